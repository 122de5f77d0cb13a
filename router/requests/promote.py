"""Lambda function ``promote``: makes files that are queued for the batch lane urgent.

Each manifest is superseded once: the successors' documents, then the transaction, then the pointers.
"""

from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

from lake.errors import InvalidDocumentError, InvalidInputError, UnusableDocumentError
from lake.ledger import CollectionId, ManifestRow, State
from lake.manifest import Identity, Lane, Manifest, ObjectVersion, new_manifest_id
from lake.manifest_documents import read_manifest, write_manifest
from lake.texts import advise_reprocess, format_count
from lake.time import iso_utc
from router.divide import divide, divide_selected, draft_selected
from router.entry import lambda_handler
from router.ownership.owner import RoutedArrival, cut_drafts, write_pointer
from router.requests.selection import (
    REPLACED,
    Files,
    RequestReport,
    Selection,
    arrivals_by_manifest,
    open_rows,
    parse_fields,
    parse_flag,
    parse_target,
    successors,
    visit,
)
from router.services import PARALLEL_REQUESTS, Services, in_parallel
from router.stream.runs import FailedStartsError, ensure_running
from router.telemetry import logger

MAX_SUCCESSORS = 90
"""Maximum stream manifests per supersede; with source and rest they fit DynamoDB's 100 actions per transaction."""
REASON = "manually promoted to the stream lane"
FIELDS = ("files", "dataset", "from", "to", "dryRun")
EXAMPLE = '{"files": ["s3://bucket/key"]} or {"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'
PROMOTE_COUNTS = ("promoted", "inStream", "tooLate", "notMoved", "ignored", "notRouted", "unknown", "manifests")
"""Object versions by outcome; ``unknown`` counts requested URIs, and ``manifests`` new manifests of the stream lane."""
MAX_QUEUED_FILES = 10_000
"""Maximum number of files of the batch lane in a promoted selection; each may need a stream manifest of its own."""
PARALLEL_MOVES = 8
"""Manifests that are moved at the same time. In sequence, 10,000 would exceed the function's time. It is a small number
because each move writes several times to one partition key of the index."""
PARALLEL_WRITES = PARALLEL_REQUESTS // PARALLEL_MOVES
"""Number of documents or pointers that each move writes at the same time."""


def promote(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Move files that are queued for the batch lane to the stream lane; a dry run writes nothing.

    Idempotent: a repetition moves nothing twice, and moves what a crashed invocation has left; the sweep writes missing
    pointers. Raises ``InvalidInputError``: unknown field, neither files nor a selection or both, too many files; the
    error of a collection that could not be divided, if no other file was moved.
    """
    fields = parse_fields(event, FIELDS, "promote", EXAMPLE)
    _, files, selection = parse_target(fields, services, ("files",), "promote", EXAMPLE)
    dry_run = parse_flag(fields, "dryRun")
    report, fault = RequestReport(PROMOTE_COUNTS), None
    work = Promotion(services, report, dry_run=dry_run)
    if selection is None:
        # Named files can reach one manifest by different paths, and one supersede must move them together.
        visit(arrivals_by_manifest(services, files, report), work.move, threads=1)
    else:
        manifests, fault = find_queued(services, selection, report, dry_run=dry_run)
        visit(dict.fromkeys(manifests), work.move, threads=PARALLEL_MOVES)
    # Not raised: the files have moved, and a failed promote would hide that.
    error = next(iter(ensure_running(services, sorted(work.waiting)).values()), None)
    if error is not None:
        message = f"the streaming job was not started ({error}): remove the cause, then the sweep starts it"
        report.messages.insert(0, str(error) if isinstance(error, FailedStartsError) else message)
    logger.info("promoted", dry_run=dry_run, counts=report.counts)
    if fault is not None and not report.counts["promoted"]:
        raise fault
    return report.answer(dry_run=dry_run)


handler = lambda_handler(promote, answers_refusals=True)
"""``{"files": ["s3://...", ...]}`` or ``{"dataset"?, "from"?, "to"?}``, ``"dryRun"?`` -> counts and messages."""


class Promotion:
    """The work of one invocation. Each step reads the row first, so that all can be repeated after any crash."""

    def __init__(self, services: Services, report: RequestReport, *, dry_run: bool) -> None:
        self._services, self._report, self._dry_run = services, report, dry_run
        self.waiting: set[str] = set()
        """Shards to which a pointer was written."""

    def move(self, manifest: str, files: Files) -> Mapping[str, Files]:
        """Move a manifest or its given files; returns the files to continue with, by manifest. Thread-safe.

        A manifest whose document cannot be used keeps its files, and does not stop the others.
        """
        row = self._services.ledger.manifests.get(manifest)
        subject = _format_files(files) if files else f"manifest {manifest} is"
        number = len(files) if files else 1 if row is None else row.files
        try:
            if row is not None and row.state in REPLACED:
                if row.collection is not None and files is not None:
                    return self._divide(row, files)
                return successors(self._services, row, files)
            count, why = promote_outcome(row)
            if row is not None and count == "promoted":
                return self._move(row, files)
            if row is not None and count == "inStream" and not self._dry_run:
                # The first pointer may be missing.
                self._point_to(row)
            self._report.add(count, number, f"{subject} {why}")
        except UnusableDocumentError as error:
            self._report.add("notMoved", number, f"{subject} not moved: {error}")
        return {}

    def _divide(self, row: ManifestRow, files: set[ObjectVersion]) -> Mapping[str, Files]:
        """The files by manifest of their collection's division; divides the collection if necessary."""
        collection, held = CollectionId.parse(str(row.collection)), successors(self._services, row, files)
        if not held and self._dry_run:
            message = f"{_format_files(files)} to be moved to the stream lane from the collection of {collection.hour}"
            self._report.add("promoted", len(files), message)
            return {}
        # A part whose document was damaged has a collection of its own.
        for candidate in (collection, CollectionId(collection.hour, row.id)):
            if not held:
                divide(self._services, candidate)
                held = successors(self._services, row, files)
        return held

    def _move(self, row: ManifestRow, files: Files) -> Mapping[str, Files]:
        """Supersede once. Files beyond the limit stay in the batch lane's successor; the next step moves them."""
        services, bucket = self._services, self._services.resources.control_bucket
        now = services.clock()
        document = read_manifest(services.s3, bucket, row, services.resources.file_buckets)
        requested = set(map(Identity.of, document.files if files is None else files))
        listed = [file for file in document.files if Identity.of(file) in requested]
        if len(listed) < len(requested):
            raise InvalidDocumentError(f"manifest {document.id} lacks files that it should have: this is a defect")
        arrivals = [RoutedArrival(file, row.partition, Lane.STREAM, REASON, urgent=True) for file in listed]
        drafts = cut_drafts(arrivals, services.settings, lambda: new_manifest_id(now))
        if self._dry_run:
            self._report_moved(row, {file for draft in drafts for file in draft.files}, len(drafts))
            return {}
        urgent = [draft.manifest(iso_utc(now)) for draft in drafts[:MAX_SUCCESSORS]]
        moved = {file for manifest in urgent for file in manifest.files}
        unmoved = tuple(file for file in document.files if file not in moved)
        # The rest keeps its age, so that the alarm for long open manifests measures it in full.
        rest = [Manifest(new_manifest_id(now), Lane.BATCH, row.partition, row.queued_at, unmoved)] if unmoved else []
        made = in_parallel(lambda item: write_manifest(services.s3, bucket, item), [*urgent, *rest], PARALLEL_WRITES)
        if not services.ledger.manifests.supersede(row, made, REASON, now):
            number = len(files or document.files)
            self._report.add("notMoved", number, f"manifest {row.id} changed meanwhile: promote its files again")
            return {}
        in_parallel(self._point_to, urgent, PARALLEL_WRITES)
        logger.info(
            "manifest promoted", manifest_id=row.id, files=len(moved), successors=len(urgent), rest=len(unmoved)
        )
        self._report_moved(row, moved, len(urgent))
        exceeding = {file for draft in drafts[MAX_SUCCESSORS:] for file in draft.files}
        return {manifest.id: exceeding for manifest in rest if exceeding}

    def _point_to(self, manifest: ManifestRow | Manifest) -> None:
        write_pointer(self._services, manifest.id, urgent=True)
        self.waiting.add(self._services.settings.shards.of(manifest.id))

    def _report_moved(self, row: ManifestRow, moved: set[ObjectVersion], manifests: int) -> None:
        when, into = "to be" if self._dry_run else "now", format_count(manifests, "manifest")
        message = f"{_format_files(moved)} {when} in the stream lane, in {into}, no longer in {row.id}"
        self._report.add("promoted", len(moved), message)
        self._report.add("manifests", manifests)


def _format_files(files: Collection[ObjectVersion]) -> str:
    """Subject and verb of a message: ``s3://bucket/key is``, or ``3 files (first: s3://bucket/key) are``."""
    first = min(file.uri for file in files)
    return f"{first} is" if len(files) == 1 else f"{format_count(len(files), 'file')} (first: {first}) are"


def find_queued(
    services: Services, selection: Selection, report: RequestReport, *, dry_run: bool
) -> tuple[list[str], Exception | None]:
    """QUEUED manifests of the batch lane in the selection, from the index: a hint. Also the error of an undivided
    collection, or None.

    It divides the collections of the selected hours; a dry run reports their files instead. Raises
    ``InvalidInputError`` if the manifests have more than ``MAX_QUEUED_FILES`` files. Memory holds no
    more manifests than that, because a million can wait.
    """
    divided, fault = ([], None) if dry_run else divide_selected(services, selection)
    batch: dict[str, int] = {}
    for row in chain(divided, open_rows(services, Lane.BATCH, State.QUEUED, selection)):
        batch[row.id] = row.files
        if len(batch) > MAX_QUEUED_FILES:
            break
    if fault is not None:
        report.messages.append(f"files of a collection are not moved, because it could not be divided: {fault}")
    number = sum(batch.values())
    for manifest in draft_selected(services, selection) if dry_run else ():
        number += len(manifest.files)
        moved = f"{format_count(len(manifest.files), 'file')} of {manifest.partition}"
        report.add("promoted", len(manifest.files), f"{moved} to be moved to the stream lane from their collection")
    if number > MAX_QUEUED_FILES:
        raise InvalidInputError(
            f"the selection holds more than {format_count(MAX_QUEUED_FILES, 'file')} of the batch lane: pass a smaller "
            "range, or start overnight"
        )
    return list(batch), fault


def promote_outcome(row: ManifestRow | None) -> tuple[str, str]:
    """The name of the count that a manifest adds to, and the reason if its files are not moved now.

    ``row`` was read consistently; None if the ledger has no row. A manifest that was tried before is promoted like any
    other: its successors have all attempts, unreadable files are detected again, and what the stream lane cannot
    convert returns to the batch lane.
    """
    if row is None or row.state == State.ABANDONED:
        return "notRouted", "being routed right now: promote again in a few minutes"
    if row.state == State.QUEUED and row.lane == Lane.STREAM:
        return "inStream", "waiting in the stream lane already"
    if row.state == State.QUEUED and row.published is None:
        return "promoted", ""
    if row.state == State.QUEUED:
        return "notMoved", "to be reprocessed by the batch lane: start overnight to do it now"
    ended = {
        State.DONE: "converted already: explain shows the result",
        State.FAILED: f"FAILED: {advise_reprocess(row.id)}",
    }
    return "tooLate", ended.get(row.state, "being converted: wait for it")
