"""Lambda function ``reprocess``: queues manifests that have ended for another conversion.

Each manifest takes one conditional update.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lake.errors import InvalidInputError, UnusableDocumentError
from lake.layout import is_archived, list_versions
from lake.ledger import ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import UNVERSIONED, ObjectVersion, Partition
from lake.manifest_documents import read_manifest
from lake.successors import follow
from lake.texts import format_count
from router.entry import lambda_handler
from router.requests.selection import (
    REPLACED,
    Files,
    RequestReport,
    Selection,
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
"""Time after which no further hours of a selection are begun; shorter than the function's timeout."""
MANIFESTS_AT_ONCE = 1_000
"""Hours are visited together until they have this number of manifests. An hour of small files can have 10,000, which
take up to 20 s to queue."""
MAX_CHECKED_FILES = 2_000
"""Maximum number of files that a dry run checks: each is a request, and a manifest's files are checked in sequence."""

LINES_RESUBMITTED = (
    "repaired lines of this hour were resubmitted: if a setting changed since then accepts the originals as well, they "
    "become rows twice"
)
FIELDS = ("manifests", "files", "dataset", "from", "to", "all", "dryRun", "request", "token")
EXAMPLE = (
    '{"manifests": ["<id>"]}, {"files": ["s3://bucket/key"]} or '
    '{"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}, with "request": "<a new id>"'
)
SKIPPED_STATES = REPLACED | {State.ABANDONED}
"""States in which a listed row is neither queued nor counted: other manifests have its files."""
REPROCESS_COUNTS = ("queued", "open", "repeated", "converted", "ignored", "unusable", "unknown", "files", "bytes")
"""Manifests by outcome; ``unknown`` and ``ignored`` also count files without a manifest. ``files`` and ``bytes`` are
sums over the queued manifests."""
REQUEST_ID = re.compile(r"\S{1,128}")
"""Pattern of request ids; it also matches names of executions."""


@dataclass(frozen=True, slots=True)
class ReprocessProgress:
    """The progress of the invocations for a selection."""

    counts: dict[str, int] = field(default_factory=dict)
    queued: Selection | None = None
    """Includes every queued manifest; None if none was queued."""
    visited: Partition | None = None
    """The last visited hour; None before the first one."""


def reprocess(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Queue manifests that are FAILED, or DONE without some of their files, for the batch lane.

    The next generation reads every file of the manifest again. What the manifest has published stays until then, and
    longer if a file is gone. ``"all": true`` also queues DONE manifests that left out nothing. A dry run writes nothing
    and checks whether files are gone. Idempotent: a repetition with the same ``request`` queues nothing twice. Raises
    ``InvalidInputError`` with what to pass if the input is not valid.
    """
    fields = parse_fields(event, FIELDS, "reprocess", EXAMPLE)
    manifests, files, selection = parse_target(fields, services, ("manifests", "files"), "reprocess", EXAMPLE)
    every, dry_run, request = parse_flag(fields, "all"), parse_flag(fields, "dryRun"), fields.get("request")
    if not isinstance(request, str) or not REQUEST_ID.fullmatch(request):
        raise InvalidInputError(
            f"request = {request!r} is not a valid id: pass a new one of up to 128 characters without spaces"
        )
    progress = decode_token(ReprocessProgress, fields.get("token"), "reprocess")
    report = RequestReport(REPROCESS_COUNTS, Counter(progress.counts))
    work = Reprocessing(services, report, request, every, dry_run, progress.queued)
    visited = None if selection is None else work.queue_selected(selection, progress.visited)
    if files:
        visit(arrivals_by_manifest(services, files, report), work.queue_named)
    else:
        visit(dict.fromkeys(manifests), work.queue_named)
    logger.info("reprocessed", request=request, dry_run=dry_run, totals=report.counts)
    return {
        **report.answer(dry_run=dry_run),
        "request": request,
        "token": None if visited is None else encode_token(ReprocessProgress(report.counts, work.queued, visited)),
        "selection": work.queued and work.queued.fields(),
    }


handler = lambda_handler(reprocess, answers_refusals=True)
"""``{"manifests": [...]}``, ``{"files": [...]}`` or ``{"dataset"?, "from"?, "to"?}``; ``"request"``, ``"all"?``,
``"dryRun"?``, ``"token"?`` -> totals, messages, and a token while the selection has not been visited to its end."""


@dataclass(slots=True)
class Reprocessing:
    """The work of one invocation. Each manifest is one conditional update, so that all can be repeated."""

    services: Services
    report: RequestReport
    request: str
    """Id by which a repetition recognises the manifests that were queued before."""
    every: bool
    """Whether to queue DONE manifests without unreadable files as well."""
    dry_run: bool
    queued: Selection | None
    """Includes every manifest that this request queued, or would queue in a dry run; None if there is none."""
    visited: set[str] = field(default_factory=set)
    checked_files: int = 0

    def queue_named(self, manifest: str, files: Files) -> Mapping[str, Files]:
        """Queue a manifest. For a superseded one, return its successors with ``files``, or all of them for None."""
        if manifest in self.visited:
            return {}
        row = self.services.ledger.manifests.get(manifest)
        if row is not None and row.state in REPLACED:
            return self._successors(row, files)
        self.visited.add(manifest)
        self.queue(row, f"manifest {manifest} ")
        return {}

    def queue_selected(self, selection: Selection, after: Partition | None) -> Partition | None:
        """Queue the manifests that are listed for the selected hours after ``after``, for ``TIME_PER_CALL``.

        The ledger lists each manifest for its hour before the manifest has a row. Returns the last visited hour; None
        if all were visited.
        """
        ledger, stop_at = self.services.ledger, self.services.clock() + TIME_PER_CALL
        visited: Partition | None = None

        def count_damage(error: Exception) -> None:
            self.report.add("unusable", 1, str(error))

        for hours in batches_of(_hours(self.services, selection, after), PARALLEL_REQUESTS):
            manifests: list[str] = []
            for hour, listed in zip(hours, in_parallel(ledger.partitions.manifests, hours), strict=True):
                manifests += listed
                if len(manifests) < MANIFESTS_AT_ONCE and hour != hours[-1]:
                    continue
                if visited is not None and self.services.clock() >= stop_at:
                    return visited
                for page in follow(ledger, manifests, on_damage=count_damage):
                    # The pages include the successors of superseded manifests.
                    rows = (row for _, row in page if row is not None and row.state not in SKIPPED_STATES)
                    in_parallel(self.queue, rows)
                manifests, visited = [], hour
        return None

    def queue(self, row: ManifestRow | None, subject: str = "") -> None:
        """Queue or count a manifest. ``subject`` begins the message about one that stays; empty: no message."""
        count, why = reprocess_outcome(row, self.request, every=self.every)
        if row is not None and count == "queued":
            self._queue(row)
            return
        if row is not None and row.open and count == "repeated":
            self._include(row)
        self.report.add(count, 1, f"{subject}{why}" if subject else None)

    def _include(self, row: ManifestRow) -> None:
        """Include a manifest in ``queued``. Thread-safe."""
        dataset, stamp = row.partition.dataset, row.partition.stamp
        with self.report.lock:
            known = self.queued or Selection(dataset, stamp, stamp)
            one = dataset if known.dataset == dataset else None
            self.queued = Selection(one, min(known.first or stamp, stamp), max(known.last or stamp, stamp))

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
        self._include(row)

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
        if self.checked_files + row.files > MAX_CHECKED_FILES:
            return "; its files were not checked: pass fewer manifests to check them"
        self.checked_files += row.files
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


def _hours(services: Services, selection: Selection, after: Partition | None) -> Iterator[Partition]:
    """The selected hours after ``after``, sorted by dataset and time."""
    names = services.ledger.datasets.names() if selection.dataset is None else [selection.dataset]
    remaining = (name for name in names if after is None or name >= after.dataset)
    first, last = selection.first or "0", selection.last or "~"
    hours = (row.partition for name in remaining for row in services.ledger.partitions.hours(name, first, last))
    return (hour for hour in hours if after is None or hour > after)


def reprocess_outcome(row: ManifestRow | None, request: str, *, every: bool) -> tuple[str, str]:
    """The name of the count that a manifest adds to, and the reason if it is not to be queued.

    ``row`` was read consistently; None if the ledger has no row. Only a manifest that has ended is queued, and only
    once for a request: a repetition finds its id in the row.
    """
    if row is None or row.state == State.ABANDONED:
        return "unknown", "is not in the ledger: check the id; explain shows those of a file"
    if row.request == request:
        return "repeated", f"was queued by this request before and is {row.state} now"
    if row.open and row.state == State.QUEUED:
        return "open", f"waits in the {row.lane} lane already: its next run converts it"
    if row.open:
        return "open", f"is {row.state} by run {row.owner}: wait until it has ended"
    if row.state == State.FAILED or every or has_unreadable_files(row):
        return "queued", ""
    again = f"'hybrid-router reprocess --manifest {row.id} --all' converts it again"
    return "converted", f"is DONE and all of its files were read: {again}"


def has_unreadable_files(row: ManifestRow) -> bool:
    """Whether a DONE manifest left out files, which are in the quarantine by reference."""
    return row.state == State.DONE and row.published is not None and row.published.totals.failed_files > 0
