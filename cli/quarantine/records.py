"""The published records of the quarantine, read page by page, and whether each was resubmitted."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Annotated, Any

import typer

from cli.commands import FirstHour, LastHour
from cli.deployed_stack import DeployedStack, known_dataset
from lake.commit import read_commit
from lake.errors import TerminalError
from lake.layout import is_own_key, list_objects, parse_generation, parse_s3_uri, partition_prefix
from lake.ledger import ManifestRow, ResubmissionRow
from lake.manifest import Partition
from lake.manifest_documents import read_resubmission
from router.requests.selection import Selection, parse_hours

Limit = Annotated[int, typer.Option(min=1, help="Maximum number of records.")]

WHOLE_FILE, ONE_LINE, COUNTED_LINES = "file", "line", "lines"
"""Kinds of records: a file that could not be read, a rejected line, and rejected lines that are only counted."""


@dataclass(frozen=True, slots=True)
class RejectedPlace:
    """The origin of a rejected line or an unreadable file, and the generation that rejected it."""

    partition: Partition
    manifest: str
    generation: int
    source: str
    version: str
    offset: int
    """First byte, counted in the decompressed file."""
    reason: str

    @property
    def identity(self) -> tuple[str, str, int]:
        """Identity of the line in every generation: URI and version of its file, and its offset."""
        return self.source, self.version, self.offset


@dataclass(frozen=True, slots=True)
class QuarantineRecord(RejectedPlace):
    kind: str
    length: int
    count: int
    """Number of rejected lines; 0 for a file."""
    line: bytes | None
    """The line as in the file, without its newline; None if the record only refers to it."""

    @classmethod
    def of(cls, row: ManifestRow, generation: int, data: Mapping[str, Any]) -> "QuarantineRecord":
        line = data["line"].encode() if "line" in data else None
        if "line_base64" in data:
            line = base64.b64decode(data["line_base64"])
        count = 0 if data["kind"] == WHOLE_FILE else data.get("count", 1)
        place = (data["source"], data["version"], data["offset"], data["reason"])
        return cls(row.partition, row.id, generation, *place, data["kind"], data["length"], count, line)


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """The criteria of a selection of records; None sets no restriction."""

    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None
    first: FirstHour = None
    last: LastHour = None
    reason: Annotated[str | None, typer.Option(help="Only reasons that begin with this.")] = None
    file: Annotated[str | None, typer.Option(help="Only this input file: s3://bucket/key.")] = None


ALL_RECORDS = RecordSelection()


@dataclass
class RecordScan:
    """The selected records of published generations, by dataset, hour and manifest, up to a limit.

    Memory holds one page of the listing, one record, and the lines of an hour that were resubmitted.
    """

    stack: DeployedStack
    limit: int
    """Maximum number of selected records."""
    selected: RecordSelection
    is_complete: bool = True
    """Whether the limit has left out no record; known at the end."""
    _hours: Selection = field(init=False)

    def __post_init__(self) -> None:
        chosen = self.selected
        if chosen.dataset is not None:
            known_dataset(self.stack, chosen.dataset)
        self._hours = Selection(chosen.dataset, *parse_hours({"from": chosen.first, "to": chosen.last}))
        self._name = None if chosen.file is None else parse_s3_uri(chosen.file)
        self._resubmitted = lru_cache(1)(partial(resubmitted_lines, self.stack))

    def is_resubmitted(self, record: QuarantineRecord) -> bool:
        return record.kind == ONE_LINE and record.identity in self._resubmitted(record.partition)

    def __iter__(self) -> Iterator[QuarantineRecord]:
        number, chosen = 0, self.selected
        for record in self._published_records():
            if chosen.file in (None, record.source) and record.reason.startswith(chosen.reason or ""):
                if number == self.limit:
                    self.is_complete = False
                    return
                number += 1
                yield record

    def _published_records(self) -> Iterator[QuarantineRecord]:
        stack = self.stack
        for span in self._spans():
            row: ManifestRow | None = None
            kept: frozenset[str] | None = None
            read: set[str] = set()
            for key in self._keys(*span):
                manifest, generation = parse_generation(key) or ("", 0)
                # The keys of a manifest follow one another.
                if row is None or row.id != manifest:
                    row, kept, read = (stack.ledger.manifests.get(manifest) if manifest else None), None, set()
                if row is None or row.published is None or not is_own_key(key, row.partition, row.id, generation):
                    continue
                found = frozenset({key}) if generation == row.published.generation else frozenset[str]()
                if generation < row.published.generation and kept is None:
                    # A generation keeps objects of an earlier one if input files were gone when it was converted. And
                    # it may have been published after its keys were listed.
                    document = read_commit(stack.s3, stack.resources.control_bucket, row.published.document)
                    found = kept = frozenset(item.key for item in document.quarantine)
                for name in sorted(found - read):
                    read.add(name)
                    yield from _read_object(stack, name, row, row.published.generation)

    def _spans(self) -> Iterator[tuple[str, str, str]]:
        """Yield prefixes of keys, each with its first key and its last prefix; empty: no limit."""
        hours, ledger = self._hours, self.stack.ledger
        if self._name is not None:
            rows = ledger.arrivals.versions(self._name.bucket, self._name.key)
            found = {row.partition for row in rows if row.partition}
            yield from ((partition_prefix(item), "", "") for item in sorted(found) if hours.selects(item))
            return
        for dataset in [hours.dataset] if hours.dataset else list(ledger.datasets.names()):
            stamps = (hours.first, hours.last)
            first, last = (partition_prefix(Partition.parse(f"{dataset}#{stamp}")) if stamp else "" for stamp in stamps)
            yield f"{dataset}/", first, last

    def _keys(self, prefix: str, first: str, last: str) -> Iterator[str]:
        """Yield keys of the quarantine's objects, in the order of their hours."""
        for item in list_objects(self.stack.s3, self.stack.resources.quarantine_bucket, prefix, first):
            key = item["Key"]
            if last and key > last and not key.startswith(last):
                return
            yield key


def _read_object(stack: DeployedStack, key: str, row: ManifestRow, generation: int) -> Iterator[QuarantineRecord]:
    bucket = stack.resources.quarantine_bucket
    try:
        body = stack.s3.get_object(Bucket=bucket, Key=key)["Body"]
    except stack.s3.exceptions.NoSuchKey:
        # A generation was published since the row was read, and the sweep has deleted this one.
        return
    for number, line in enumerate(body.iter_lines(1 << 20), 1):
        try:
            record = QuarantineRecord.of(row, generation, json.loads(line))
            if record.kind == WHOLE_FILE:
                record = replace(record, reason=stack.runnable(record.reason))
        except (ValueError, KeyError, TypeError) as error:
            raise TerminalError(
                f"record {number} of s3://{bucket}/{key} is damaged ({error!r}): restore the object, or run "
                f"'hybrid-router reprocess --manifest {row.id}'"
            ) from error
        yield record


def resubmitted_lines(stack: DeployedStack, partition: Partition) -> dict[tuple[str, str, int], ResubmissionRow]:
    """Return the identities of an hour's lines that were resubmitted."""
    return {
        identity: row
        for row in stack.ledger.resubmissions.of(partition)
        for identity in read_resubmission(stack.s3, stack.resources.control_bucket, row).identities()
    }
