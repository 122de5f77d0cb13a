"""Lambda function ``reprocess``: manifests that have ended are queued for another conversion.

One conditional update for each manifest.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lake.commit import read_commit
from lake.errors import InvalidInputError, TerminalError, UnusableDocumentError
from lake.layout import is_archived, list_versions
from lake.ledger import ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import UNVERSIONED, Manifest, ObjectVersion, Partition
from lake.manifest_documents import read_manifest
from lake.successors import files_by_successor, follow
from lake.texts import format_count
from router.entry import with_refusals
from router.requests.selection import (
    NextStep,
    Report,
    Selection,
    Step,
    decode_token,
    encode_token,
    find_files,
    parse_fields,
    parse_flag,
    parse_target,
)
from router.services import PARALLEL_REQUESTS, Services, container_services
from router.telemetry import logger

TIME_PER_CALL = timedelta(minutes=5)
"""No manifests of a selection are begun after it; shorter than the function's timeout."""
MAX_CHANGES = 5
"""Number of times that a row may change concurrently before the manifest is left as it is."""

LINES_GIVEN_BACK = (
    "rejected lines of this hour were given back repaired: if a setting that was changed since lets them through now, "
    "they are rows twice"
)
FIELDS = ("manifests", "files", "dataset", "from", "to", "only", "dryRun", "request", "token")
EXAMPLE = (
    '{"manifests": ["<id>"]}, {"files": ["s3://bucket/key"]} or '
    '{"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'
)
REPROCESS_COUNTS = ("queued", "open", "repeated", "converted", "ignored", "unusable", "unknown", "files", "bytes")
"""Manifests by outcome; ``unknown`` and ``ignored`` also count files that have no manifest. ``files`` and ``bytes`` are
those of the queued manifests."""
REQUEST_ID = re.compile(r"\S{1,128}")
"""Names of executions are request ids as well."""


class Only(StrEnum):
    """Which of the selected manifests a reprocess queues again."""

    FAILED = "failed"
    """FAILED ones, and DONE ones with files that could not be read."""
    ALL = "all"
    """Every one that is FAILED or DONE."""


@dataclass(slots=True)
class ReprocessReport(Report):
    """A report that continues over several invocations, with the hours of what was queued."""

    names: tuple[str, ...] = REPROCESS_COUNTS
    datasets: set[str] = field(default_factory=set)
    first: str | None = None
    """Their first hour, ``YYYY-MM-DDTHH``; None: nothing was queued."""
    last: str | None = None
    place: str = ""
    """Dataset, hour and manifest after which a selection continues."""

    def select(self, row: ManifestRow) -> None:
        """Include a manifest that this request has queued, or would in a dry run, in the selection."""
        self.datasets.add(row.partition.dataset)
        stamp = row.partition.stamp
        self.first = min(self.first or stamp, stamp)
        self.last = max(self.last or stamp, stamp)

    @classmethod
    def continuing(cls, token: str | None) -> "ReprocessReport":
        """The report of the invocation that returned ``token``, without its messages; None begins a new one.

        Raises ``InvalidInputError``: ``token`` is not one that the function returned.
        """
        if token is None:
            return cls()

        def decode(values: dict[str, Any]) -> ReprocessReport:
            return cls(**{**values, "counts": Counter(values["counts"]), "datasets": set(values["datasets"])})

        return decode_token(token, "reprocess", decode)

    def token(self) -> str:
        names = ("counts", "first", "last", "place")
        return encode_token({"datasets": sorted(self.datasets), **{name: getattr(self, name) for name in names}})

    def selection(self) -> dict[str, str] | None:
        """Input of ``overnight`` that includes every queued manifest; None: nothing was queued."""
        if self.first is None or self.last is None:
            return None
        dataset = {"dataset": min(self.datasets)} if len(self.datasets) == 1 else {}
        return {**dataset, "from": self.first, "to": self.last}


@with_refusals
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"manifests": [...]}``, ``{"files": [...]}`` or ``{"dataset"?, "from"?, "to"?}``; ``"only"?``, ``"dryRun"?``,
    ``"request"?``, ``"token"?`` -> totals, messages, and a token while the selection has not been visited to its end.
    """
    with_id = {"request": context.aws_request_id, **event} if isinstance(event, dict) else event
    return reprocess(with_id, container_services())


def reprocess(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Queue manifests that are FAILED, or DONE without some of their files, for the batch lane.

    Every file of a queued manifest is read again, in the manifest's next generation; what it has published stays until
    that one is published, and after it where a file is gone. ``"only": "all"`` includes DONE manifests that left
    nothing out. A dry run writes nothing, and looks for files that are gone. Idempotent: a repetition with the same
    ``request`` queues nothing twice. Raises ``InvalidInputError``: the input is not valid; says what to pass.
    """
    fields = parse_fields(event, FIELDS, "reprocess", EXAMPLE)
    target = parse_target(fields, services, ("manifests", "files"), "reprocess", EXAMPLE)
    only = fields.get("only") or Only.FAILED
    if only not in list(Only):
        raise InvalidInputError(f"only = {only!r} is unknown: pass {' or '.join(Only)}")
    dry_run, request = parse_flag(fields, "dryRun"), fields.get("request")
    if not isinstance(request, str) or not REQUEST_ID.fullmatch(request):
        raise InvalidInputError(f"request = {request!r} is not a valid id: pass up to 128 characters without spaces")
    report = ReprocessReport.continuing(fields.get("token"))
    is_complete = True
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        work = Reprocessing(services, pool, report, Only(only), request, dry_run=dry_run)
        if target.selection is not None:
            stop_at = services.clock() + TIME_PER_CALL
            for rows in find_listed(services, pool, target.selection, report, stop_at):
                work.queue_selected(rows)
            is_complete = not report.place
        elif target.files:
            work.queue_named({**find_files(services, pool, target.files, report)})
        else:
            work.queue_named(dict.fromkeys(target.manifests))
    logger.info("reprocessed", request=request, dry_run=dry_run, totals=report.counts)
    return {
        **report.answer(dry_run=dry_run),
        "request": request,
        "token": None if is_complete else report.token(),
        "selection": report.selection(),
    }


class Reprocessing:
    """The work of one invocation. Each manifest is one conditional update, so all of it can be repeated.

    ``request``: the id by which a repetition queues no manifest twice.
    """

    def __init__(
        self,
        services: Services,
        pool: ThreadPoolExecutor,
        report: ReprocessReport,
        only: Only,
        request: str,
        *,
        dry_run: bool,
    ) -> None:
        self._services, self._pool, self._report = services, pool, report
        self._only, self._request, self._dry_run = only, request, dry_run
        self._inputs = InputLook(services, pool)
        self._given_back: dict[Partition, bool] = {}
        """Read anew after manifests were queued: lines that were given back before the last of them are among them."""

    def queue_named(self, files: Mapping[str, set[ObjectVersion] | None]) -> None:
        """Queue manifests by id; a superseded one is followed to the successors that hold the files; None: to all."""
        remaining = dict(files)
        ended: set[str] = set()
        while remaining:
            results = list(self._pool.map(self._queue, remaining))
            self._given_back.clear()
            following: dict[str, set[ObjectVersion] | None] = {}
            for (manifest, part), (row, step) in zip(remaining.items(), results, strict=True):
                if row is not None and step.step == Step.FOLLOW:
                    for successor, held in self._successors(row, part).items():
                        earlier = following.get(successor, set())
                        following[successor] = None if earlier is None or held is None else earlier | held
                else:
                    ended.add(manifest)
                    self._add(manifest, row, step, named=True)
            remaining = {manifest: part for manifest, part in following.items() if manifest not in ended}

    def queue_selected(self, rows: Iterable[ManifestRow]) -> None:
        """Queue manifests of a selection; those that stay are counted. Their successors are among the rows."""
        candidates = [row for row in rows if row.state not in (State.SUPERSEDED, State.ABANDONED)]
        results = list(self._pool.map(lambda row: self._queue(row.id, row), candidates))
        self._given_back.clear()
        for row, (current, step) in zip(candidates, results, strict=True):
            if step.step != Step.FOLLOW:
                self._add(row.id, current, step, named=False)

    def _queue(self, manifest: str, row: ManifestRow | None = None) -> tuple[ManifestRow | None, NextStep]:
        """The row that the step was decided by, and the step, which was taken. ``row`` is a consistent read."""
        manifests = self._services.ledger.manifests
        for _ in range(MAX_CHANGES):
            current = row or manifests.get(manifest)
            step = next_reprocess_step(current, self._only, self._request)
            if current is None or step.step != Step.ACT or self._dry_run:
                return current, step
            self._services.ledger.partitions.touch(current.partition, self._services.clock())
            if manifests.force(current, self._services.clock(), self._request):
                logger.info("manifest reprocessed", manifest_id=manifest, generation=current.generation + 1)
                return current, step
            row = None
        return current, NextStep(Step.LEAVE, "open", f"changed {MAX_CHANGES} times meanwhile: reprocess it again")

    def _successors(
        self, row: ManifestRow, files: set[ObjectVersion] | None
    ) -> Mapping[str, set[ObjectVersion] | None]:
        if files is None:
            if row.collection is not None:
                self._report.add(
                    "unknown", 1, f"{row.id} is a part of the collection {row.collection}: name files of it"
                )
            return dict.fromkeys(row.superseded_by)
        services = self._services
        try:
            held = files_by_successor(services.s3, services.ledger, services.resources, row, files)
            if not held:
                self._report.add("open", 1, f"the collection {row.collection} waits in the batch lane already")
            return dict(held)
        except UnusableDocumentError as error:
            self._report.add("unusable", 1, f"the successors of manifest {row.id} cannot be followed: {error}")
            return {}

    def _add(self, manifest: str, row: ManifestRow | None, step: NextStep, *, named: bool) -> None:
        if row is not None and step.step == Step.ACT:
            message = _format_queued(row, dry_run=self._dry_run)
            if self._dry_run and (found := self._inputs.describe(row)) is not None:
                message += f"; {found}"
            if row.published is not None and self._has_resubmissions(row.partition):
                message += f"; {LINES_GIVEN_BACK}"
            self._report.add("queued", 1, message)
            self._report.counts.update(files=row.files, bytes=row.bytes)
            self._report.select(row)
        else:
            if row is not None and row.open and row.request == self._request:
                self._report.select(row)
            self._report.add(step.count, 1, f"manifest {manifest} {step.why}" if named else None)

    def _has_resubmissions(self, partition: Partition) -> bool:
        if partition not in self._given_back:
            self._given_back[partition] = bool(self._services.ledger.resubmissions.of(partition))
        return self._given_back[partition]


def _format_queued(row: ManifestRow, *, dry_run: bool) -> str:
    when = "would be" if dry_run else "is"
    why = f"FAILED: {row.reason}" if row.state == State.FAILED else "DONE"
    if has_unreadable_files(row):
        why = "DONE, and files of it could not be read"
    files = format_count(row.files, "file")
    return (
        f"manifest {row.id} ({row.partition}, {files}) {when} queued in generation {row.generation + 1}; it was {why}"
    )


MANIFESTS_AT_ONCE = 1_000


def find_listed(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: ReprocessReport, stop_at: datetime
) -> Iterator[list[ManifestRow]]:
    """Rows of the selection, ``MANIFESTS_AT_ONCE`` and their successors at a time, after ``report.place``, until
    ``stop_at``.

    The ledger lists each manifest for its hour before it has a row. ``report.place`` moves on after the caller is done
    with the rows, and is empty once all hours were listed.
    """
    for listed in batches_of(_listed(services, pool, selection, report.place), MANIFESTS_AT_ONCE):
        damaged: list[TerminalError] = []
        pages = follow(services.ledger, [place.rpartition("#")[2] for place in listed], on_damage=damaged.append)
        rows = [row for page in pages for _, row in page if row is not None]
        for error in damaged:
            report.add("unusable", 1, str(error))
        yield rows
        report.place = listed[-1] if len(listed) == MANIFESTS_AT_ONCE else ""
        if services.clock() >= stop_at:
            return
    report.place = ""


def _listed(services: Services, pool: ThreadPoolExecutor, selection: Selection, after: str) -> Iterator[str]:
    """``<partition>#<manifest>`` of the manifests that are listed for selected hours, sorted: those after ``after``."""
    partitions = services.ledger.partitions
    names = services.ledger.datasets.names() if selection.dataset is None else [selection.dataset]
    # No character of a name comes before #, so the order of datasets is that of the texts.
    remaining = (name for name in names if f"{name}#~" > after)
    first, last = selection.first or "0", selection.last or "~"
    hours = (row.partition for name in remaining for row in partitions.hours(name, first, last))
    for some in batches_of((hour for hour in hours if f"{hour}#~" > after), PARALLEL_REQUESTS):
        for hour, manifests in zip(some, pool.map(partitions.manifests, some), strict=True):
            yield from (place for manifest in manifests if (place := f"{hour}#{manifest}") > after)


def next_reprocess_step(row: ManifestRow | None, only: Only, request: str) -> NextStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    Only a manifest that has ended is queued, and once for each request: a repetition finds its id in the row.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "unknown", "is not in the ledger: check the id; explain shows those of a file")
    if row.state in (State.SUPERSEDED, State.COLLECTED):
        return NextStep(Step.FOLLOW)
    if row.request == request:
        return NextStep(Step.LEAVE, "repeated", f"was queued by this request before and is {row.state} now")
    if row.open:
        return NextStep(Step.LEAVE, "open", _why_open(row))
    if row.state == State.FAILED or only == Only.ALL or has_unreadable_files(row):
        return NextStep(Step.ACT)
    again = f"'hybrid-router reprocess --manifest {row.id} --all' converts it again"
    return NextStep(Step.LEAVE, "converted", f"is DONE and all of its files were read: {again}")


def has_unreadable_files(row: ManifestRow) -> bool:
    """Whether a DONE manifest left files out, which are in the quarantine by reference."""
    return row.state == State.DONE and row.published is not None and row.published.totals.failed_files > 0


def _why_open(row: ManifestRow) -> str:
    if row.state == State.QUEUED:
        return f"waits in the {row.lane} lane already: its next run converts it"
    return f"is {row.state} by run {row.owner}: wait until it has ended"


MAX_LOOKS = 2_000
"""Maximum number of files that one invocation looks at: each is a request, and 32 of them run at the same time."""


class InputLook:
    """Looks at input files by listing their versions, which needs no right to read them."""

    def __init__(self, services: Services, pool: ThreadPoolExecutor) -> None:
        self._services = services
        self._pool = pool
        self._looks = 0

    def describe(self, row: ManifestRow) -> str | None:
        """What is gone or archived of the manifest's input, and what a reprocess then does; None: nothing is."""
        if self._looks + row.files > MAX_LOOKS:
            return "its files were not looked at: name fewer manifests to have that done"
        self._looks += row.files
        services = self._services
        try:
            manifest = read_manifest(
                services.s3, services.resources.control_bucket, row, services.resources.file_buckets
            )
            there = self._pool.map(self._is_there, manifest.files)
            gone = {file for file, is_there in zip(manifest.files, there, strict=True) if not is_there}
            if not gone:
                return None
            files = format_count(len(gone), "of its files is gone or archived", "of its files are gone or archived")
            return f"{files} (first: {min(gone).uri}){self._consequence(row, manifest, gone)}"
        except UnusableDocumentError as error:
            return f"it cannot be converted: {error}"

    def _consequence(self, row: ManifestRow, manifest: Manifest, gone: Collection[ObjectVersion]) -> str:
        if row.published is None:
            return ", and would be in the quarantine by reference"
        document = read_commit(self._services.s3, self._services.resources.control_bucket, row.published.document)
        unread = {(source.uri, source.version) for source in document.sources if source.failed is not None}
        if all((file.uri, file.version) in unread for file in gone):
            return ", and would stay in the quarantine by reference"
        new = [file for file in manifest.files if (file.uri, file.version) in unread and file not in gone]
        if not new:
            return ": it would be DONE again with what it has published, and nothing would change"
        converted = format_count(len(new), "file that was not readable", "files that were not readable")
        return f": what it has published would stay, and {converted} would be converted"

    def _is_there(self, file: ObjectVersion) -> bool:
        if file.bucket != self._services.resources.input_bucket:
            # Repaired lines: nothing deletes them, and the function may not list the control bucket.
            return True
        return any(
            _is_version(file, item["VersionId"], item["ETag"].strip('"')) and not is_archived(item)
            for item in list_versions(self._services.s3, file.bucket, file.key)
        )


def _is_version(file: ObjectVersion, version_id: str, etag: str) -> bool:
    if file.version_id is not None:
        return file.version_id == version_id
    return version_id == UNVERSIONED and file.etag == etag
