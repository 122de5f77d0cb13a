"""Lambda function ``reprocess``: queues manifests that have ended for another conversion.

Each manifest takes one conditional update.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lake.errors import InvalidInputError, TerminalError, UnusableDocumentError
from lake.layout import is_archived, list_versions
from lake.ledger import ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import UNVERSIONED, ObjectVersion
from lake.manifest_documents import read_manifest
from lake.successors import follow
from lake.texts import format_count
from router.entry import lambda_handler
from router.requests.selection import (
    Files,
    NextStep,
    RequestReport,
    Selection,
    Step,
    arrivals_by_manifest,
    decode_token,
    encode_token,
    parse_fields,
    parse_flag,
    parse_target,
    successors,
    visit,
)
from router.services import PARALLEL_REQUESTS, Services, in_parallel
from router.telemetry import logger

TIME_PER_CALL = timedelta(minutes=5)
"""Time after which no further manifests of a selection are begun; shorter than the function's timeout."""
MAX_LOOKS = 2_000
"""Maximum number of files that a dry run checks: each is a request, and a manifest's files are checked in sequence."""
REPLACED = frozenset({State.SUPERSEDED, State.COLLECTED})

LINES_RESUBMITTED = (
    "repaired lines of this hour were resubmitted: if a setting changed since then accepts the originals as well, they "
    "become rows twice"
)
FIELDS = ("manifests", "files", "dataset", "from", "to", "only", "dryRun", "request", "token")
EXAMPLE = (
    '{"manifests": ["<id>"]}, {"files": ["s3://bucket/key"]} or '
    '{"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'
)
REPROCESS_COUNTS = ("queued", "open", "repeated", "converted", "ignored", "unusable", "unknown", "files", "bytes")
"""Manifests by outcome; ``unknown`` and ``ignored`` also count files without a manifest. ``files`` and ``bytes`` are
sums over the queued manifests."""
REQUEST_ID = re.compile(r"\S{1,128}")
"""Pattern of request ids; it also matches names of executions."""


class Only(StrEnum):
    """Selects which of the requested manifests a reprocess queues again."""

    FAILED = "failed"
    """FAILED manifests, and DONE manifests with files that could not be read."""
    ALL = "all"
    """Every FAILED or DONE manifest."""


@dataclass(slots=True)
class ReprocessReport(RequestReport):
    """A report over several invocations, with the hours of the queued manifests."""

    names: tuple[str, ...] = REPROCESS_COUNTS
    datasets: set[str] = field(default_factory=set)
    first: str | None = None
    """First hour of the queued manifests, ``YYYY-MM-DDTHH``; None if none was queued."""
    last: str | None = None
    place: str = ""
    """Dataset, hour and manifest after which a selection continues."""

    def select(self, row: ManifestRow) -> None:
        """Add a manifest that this request queued, or would queue in a dry run, to the selection. Thread-safe."""
        stamp = row.partition.stamp
        with self.lock:
            self.datasets.add(row.partition.dataset)
            self.first = min(self.first or stamp, stamp)
            self.last = max(self.last or stamp, stamp)

    @classmethod
    def continuing(cls, token: str | None) -> "ReprocessReport":
        """The report of the invocation that returned ``token``, without its messages; None stands for a new one.

        Raises ``InvalidInputError`` if the function did not return ``token``.
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
        """Input of ``overnight`` that includes every queued manifest; None if none was queued."""
        if self.first is None or self.last is None:
            return None
        dataset = {"dataset": min(self.datasets)} if len(self.datasets) == 1 else {}
        return {**dataset, "from": self.first, "to": self.last}


def reprocess(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Queue manifests that are FAILED, or DONE without some of their files, for the batch lane.

    The next generation reads every file of the manifest again. What the manifest has published stays until then, and
    longer if a file is gone. ``"only": "all"`` includes DONE manifests that left out nothing. A dry run writes nothing,
    and looks for files that are gone. Idempotent: a repetition with the same ``request`` queues nothing twice. Raises
    ``InvalidInputError`` with what to pass if the input is not valid.
    """
    fields = parse_fields(event, FIELDS, "reprocess", EXAMPLE)
    manifests, files, selection = parse_target(fields, services, ("manifests", "files"), "reprocess", EXAMPLE)
    only = fields.get("only") or Only.FAILED
    if only not in list(Only):
        raise InvalidInputError(f"only = {only!r} is unknown: pass {' or '.join(Only)}")
    dry_run, request = parse_flag(fields, "dryRun"), fields.get("request")
    if not isinstance(request, str) or not REQUEST_ID.fullmatch(request):
        raise InvalidInputError(f"request = {request!r} is not a valid id: pass up to 128 characters without spaces")
    report = ReprocessReport.continuing(fields.get("token"))
    is_complete = True
    work = Reprocessing(services, report, Only(only), request, dry_run)
    if selection is not None:
        stop_at = services.clock() + TIME_PER_CALL
        for rows in find_listed(services, selection, report, stop_at):
            # The rows include successors of superseded manifests.
            in_parallel(work.take_step, (row for row in rows if row.state != State.ABANDONED))
        is_complete = not report.place
    elif files:
        visit(arrivals_by_manifest(services, files, report), work.queue_named)
    else:
        visit(dict.fromkeys(manifests), work.queue_named)
    logger.info("reprocessed", request=request, dry_run=dry_run, totals=report.counts)
    return {
        **report.answer(dry_run=dry_run),
        "request": request,
        "token": None if is_complete else report.token(),
        "selection": report.selection(),
    }


_handler = lambda_handler(reprocess, answers_refusals=True)


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:  # noqa: ANN401
    """``{"manifests": [...]}``, ``{"files": [...]}`` or ``{"dataset"?, "from"?, "to"?}``; ``"only"?``, ``"dryRun"?``,
    ``"request"?``, ``"token"?`` -> totals, messages, and a token while the selection has not been visited to its end.
    """
    with_id = {"request": context.aws_request_id, **event} if isinstance(event, dict) else event
    return _handler(with_id, context)


@dataclass(slots=True)
class Reprocessing:
    """The work of one invocation. Each manifest is one conditional update, so that all can be repeated."""

    services: Services
    report: ReprocessReport
    only: Only
    request: str
    """Id by which a repetition recognises the manifests that were queued before."""
    dry_run: bool
    visited: set[str] = field(default_factory=set)
    looks: int = 0

    def queue_named(self, manifest: str, files: Files) -> Mapping[str, Files]:
        """Queue a manifest. For a superseded one, return its successors with ``files``, or all of them for None."""
        if manifest in self.visited:
            return {}
        row = self.services.ledger.manifests.get(manifest)
        if row is not None and row.state in REPLACED:
            return self._successors(row, files)
        self.visited.add(manifest)
        self.take_step(row, f"manifest {manifest} ")
        return {}

    def take_step(self, row: ManifestRow | None, subject: str = "") -> None:
        """Queue or count a manifest. ``subject`` begins the message about one that stays; empty: no message."""
        step = next_reprocess_step(row, self.only, self.request)
        if row is not None and step.step == Step.ACT:
            self._queue(row)
        elif step.step == Step.LEAVE:
            if row is not None and row.open and row.request == self.request:
                self.report.select(row)
            self.report.add(step.count, 1, f"{subject}{step.why}" if subject else None)

    def _queue(self, row: ManifestRow) -> None:
        ledger, now, message = self.services.ledger, self.services.clock(), _format_queued(row, dry_run=self.dry_run)
        if self.dry_run:
            message += self._describe_input(row)
        else:
            ledger.partitions.touch(row.partition, now)
            if not ledger.manifests.force(row, now, self.request):
                self.report.add("open", 1, f"manifest {row.id} changed meanwhile: reprocess it again")
                return
            logger.info("manifest reprocessed", manifest_id=row.id, generation=row.generation + 1)
        # Read after the manifest was queued, so that it includes lines that were resubmitted before.
        if row.published is not None and ledger.resubmissions.of(row.partition):
            message += f"; {LINES_RESUBMITTED}"
        self.report.add("queued", 1, message)
        self.report.add("files", row.files)
        self.report.add("bytes", row.bytes)
        self.report.select(row)

    def _successors(self, row: ManifestRow, files: Files) -> Mapping[str, Files]:
        if files is None and row.collection is not None:
            self.report.add("unknown", 1, f"{row.id} is a part of the collection {row.collection}: name files of it")
            return {}
        try:
            held = successors(self.services, row, files)
        except UnusableDocumentError as error:
            self.report.add("unusable", 1, f"the successors of manifest {row.id} cannot be followed: {error}")
            return {}
        if not held:
            self.report.add("open", 1, f"the collection {row.collection} waits in the batch lane already")
        return held

    def _describe_input(self, row: ManifestRow) -> str:
        """Which files are gone or archived, by listing versions, which needs no permission to read them."""
        if self.looks + row.files > MAX_LOOKS:
            return "; its files were not checked: pass fewer manifests to check them"
        self.looks += row.files
        resources = self.services.resources
        try:
            manifest = read_manifest(self.services.s3, resources.control_bucket, row, resources.file_buckets)
        except UnusableDocumentError as error:
            return f"; it cannot be converted: {error}"
        gone = [file for file in manifest.files if not _is_there(self.services, file)]
        if not gone:
            return ""
        files = format_count(len(gone), "of its files is gone or archived", "of its files are gone or archived")
        return (
            f"; {files} (first: {gone[0].uri}): a file with published rows keeps them, another would be in "
            "the quarantine by reference"
        )


def _is_there(services: Services, file: ObjectVersion) -> bool:
    if file.bucket != services.resources.input_bucket:
        # Repaired lines are never deleted, and the function may not list the control bucket.
        return True
    return any(
        (item["VersionId"] == file.version_id)
        if file.version_id is not None
        else (item["VersionId"] == UNVERSIONED and item["ETag"].strip('"') == file.etag)
        for item in list_versions(services.s3, file.bucket, file.key)
        if not is_archived(item)
    )


def _format_queued(row: ManifestRow, *, dry_run: bool) -> str:
    when = "would be" if dry_run else "is"
    why = f"FAILED: {row.reason}" if row.state == State.FAILED else "DONE"
    if has_unreadable_files(row):
        why = "DONE, and some of its files could not be read"
    files = format_count(row.files, "file")
    return (
        f"manifest {row.id} ({row.partition}, {files}) {when} queued in generation {row.generation + 1}; it was {why}"
    )


MANIFESTS_AT_ONCE = 1_000


def find_listed(
    services: Services, selection: Selection, report: ReprocessReport, stop_at: datetime
) -> Iterator[list[ManifestRow]]:
    """Rows of the selection after ``report.place``, ``MANIFESTS_AT_ONCE`` with their successors at a time, until
    ``stop_at``.

    The ledger lists each manifest for its hour before the manifest has a row. ``report.place`` advances after the
    caller is done with the rows, and is empty after all hours.
    """
    for listed in batches_of(_listed(services, selection, report.place), MANIFESTS_AT_ONCE):
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


def _listed(services: Services, selection: Selection, after: str) -> Iterator[str]:
    """Sorted ``<partition>#<manifest>`` after ``after``, for the manifests that are listed for selected hours."""
    partitions = services.ledger.partitions
    names = services.ledger.datasets.names() if selection.dataset is None else [selection.dataset]
    # No character of a name sorts before #, so the datasets are in the order of these texts.
    remaining = (name for name in names if f"{name}#~" > after)
    first, last = selection.first or "0", selection.last or "~"
    hours = (row.partition for name in remaining for row in partitions.hours(name, first, last))
    for some in batches_of((hour for hour in hours if f"{hour}#~" > after), PARALLEL_REQUESTS):
        for hour, manifests in zip(some, in_parallel(partitions.manifests, some), strict=True):
            yield from (place for manifest in manifests if (place := f"{hour}#{manifest}") > after)


def next_reprocess_step(row: ManifestRow | None, only: Only, request: str) -> NextStep:
    """The next step for a manifest, by a consistent read of its row, which is None if it has none.

    Only a manifest that has ended is queued, and only once for a request: a repetition finds its id in the row.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "unknown", "is not in the ledger: check the id; explain shows those of a file")
    if row.state in REPLACED:
        return NextStep(Step.FOLLOW)
    if row.request == request:
        return NextStep(Step.LEAVE, "repeated", f"was queued by this request before and is {row.state} now")
    if row.open:
        why = f"waits in the {row.lane} lane already: its next run converts it"
        if row.state != State.QUEUED:
            why = f"is {row.state} by run {row.owner}: wait until it has ended"
        return NextStep(Step.LEAVE, "open", why)
    if row.state == State.FAILED or only == Only.ALL or has_unreadable_files(row):
        return NextStep(Step.ACT)
    again = f"'hybrid-router reprocess --manifest {row.id} --all' converts it again"
    return NextStep(Step.LEAVE, "converted", f"is DONE and all of its files were read: {again}")


def has_unreadable_files(row: ManifestRow) -> bool:
    """Whether a DONE manifest left out files, which are in the quarantine by reference."""
    return row.state == State.DONE and row.published is not None and row.published.totals.failed_files > 0
