"""Lambda function ``promote``: files that are queued for the batch lane become urgent.

One supersede for each manifest: the documents of its successors, the transaction, the pointers.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import InvalidDocumentError, InvalidInputError, TransientError, UnusableDocumentError
from lake.ledger import CollectionId, ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import Identity, Lane, Manifest, ObjectVersion, new_manifest_id
from lake.manifest_documents import read_manifest, write_manifest
from lake.successors import files_by_successor
from lake.texts import advise_reprocess, format_count
from lake.time import iso_utc
from router.divide import divide, divide_selected, draft_selected
from router.entry import with_refusals
from router.ownership.owner import RoutedArrival, cut_drafts, write_pointer
from router.requests.selection import (
    NextStep,
    Report,
    Selection,
    Step,
    find_files,
    open_rows,
    parse_fields,
    parse_flag,
    parse_target,
)
from router.services import PARALLEL_REQUESTS, Services, container_services
from router.stream.runs import EndingRunError, FailedStartsError, ensure_all_running
from router.telemetry import logger

MAX_SUCCESSORS = 90
"""Stream manifests per supersede: with source and rest below DynamoDB's limit of 100 actions per transaction."""
MAX_CHANGES = 20
"""Number of times that a row may change concurrently before its files are left where they are."""
REASON = "manually promoted to the stream lane"
FIELDS = ("files", "dataset", "from", "to", "dryRun")
EXAMPLE = '{"files": ["s3://bucket/key"]} or {"dataset": "orders", "from": "2026-11-01T08", "to": "2026-11-01T09"}'
PROMOTE_COUNTS = ("promoted", "inStream", "tooLate", "notMoved", "ignored", "notRouted", "unknown", "manifests")
"""Object versions by outcome; ``unknown`` counts requested URIs, ``manifests`` new manifests of the stream lane."""
MAX_QUEUED_FILES = 10_000
"""Maximum number of files of the batch lane per promoted selection: each may need a stream manifest of its own."""
PARALLEL_MOVES = 8
"""Manifests that are moved at the same time: one after another, 10,000 would take longer than the function may. Few,
because each is some writes to one partition key of the index."""


@with_refusals
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    """``{"files": ["s3://...", ...]}`` or ``{"dataset"?, "from"?, "to"?}``, ``"dryRun"?`` -> counts and messages."""
    return promote(event, container_services())


def promote(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Move files that are queued for the batch lane to the stream lane; a dry run writes nothing.

    Idempotent: a repetition moves nothing twice, and finishes what a crashed invocation has begun. Raises
    ``InvalidInputError``: unknown field, neither files nor a selection or both, too many files; the error of a
    collection that could not be divided, if no other file was moved.
    """
    fields = parse_fields(event, FIELDS, "promote", EXAMPLE)
    target, dry_run = parse_target(fields, services, ("files",), "promote", EXAMPLE), parse_flag(fields, "dryRun")
    report, fault = Report(PROMOTE_COUNTS), None
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        if target.selection is None:
            files = find_files(services, pool, target.files, report)
        else:
            files, fault = find_queued(services, pool, target.selection, report, dry_run=dry_run)
        # Named files can be in one manifest by different ways, and one supersede moves them together.
        threads = 1 if target.selection is None else PARALLEL_MOVES
        move(services, pool, files, report, threads, dry_run=dry_run)
    logger.info("promoted", dry_run=dry_run, counts=report.counts)
    if fault is not None and not report.counts["promoted"]:
        raise fault
    return report.answer(dry_run=dry_run)


def move(
    services: Services,
    pool: ThreadPoolExecutor,
    files: Mapping[str, set[ObjectVersion]],
    report: Report,
    threads: int,
    *,
    dry_run: bool,
) -> None:
    """Move the files, given by manifest, to the stream lane where possible; make sure that its jobs run."""
    shares = list(batches_of(files.items(), math.ceil(len(files) / threads)))
    moves = [Promotion(services, pool, dry_run=dry_run) for _ in shares]
    with ThreadPoolExecutor(threads) as movers:
        list(movers.map(Promotion.move, moves, map(dict, shares)))
    for done in moves:
        report.counts.update(done.report.counts)
        report.messages += done.report.messages
    try:
        ensure_all_running(services, sorted({shard for done in moves for shard in done.waiting}))
    except (EndingRunError, FailedStartsError) as error:
        report.messages.insert(0, str(error))
    except (BotoCoreError, ClientError, TransientError) as error:
        # The files have moved: a failed promote would hide it.
        message = f"the streaming job was not started ({error}): remove the cause, then the sweep starts it"
        report.messages.insert(0, message)


class Promotion:
    """The work of one thread. Each step reads the row first: all of it can be repeated after any crash."""

    def __init__(self, services: Services, pool: ThreadPoolExecutor, *, dry_run: bool) -> None:
        self._services = services
        self._pool = pool
        self._dry_run = dry_run
        self._changes: Counter[str] = Counter()
        self.report = Report(PROMOTE_COUNTS)
        self.waiting: set[str] = set()
        """Shards to which a pointer was written."""

    def move(self, files: Mapping[str, set[ObjectVersion]]) -> None:
        """Move the files, given by manifest, to the stream lane where possible.

        A manifest whose document cannot be used keeps its files, and holds back no other.
        """
        remaining = dict(files)
        while remaining:
            manifest = next(iter(remaining))
            requested = remaining.pop(manifest)
            try:
                following = self._take_step(manifest, requested)
            except UnusableDocumentError as error:
                message = f"{_format_files(requested)} left in manifest {manifest}: {error}"
                self.report.add("notMoved", len(requested), message)
                continue
            for successor, part in following.items():
                remaining[successor] = remaining.get(successor, set()) | part

    def _take_step(self, manifest: str, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """Take the step that the manifest's row needs; returns the files to continue with, by manifest."""
        row = self._services.ledger.manifests.get(manifest)
        following = next_promote_step(row)
        if row is None or following.step == Step.LEAVE:
            self.report.add(following.count, len(files), f"{_format_files(files)} {following.why}")
            return {}
        if following.step == Step.FOLLOW and row.collection is not None:
            return self._divide(row, files)
        if following.step == Step.FOLLOW:
            return files_by_successor(self._services.s3, self._services.ledger, self._services.resources, row, files)
        if following.step == Step.ACT:
            return self._move(row, files)
        if not self._dry_run:
            self._point_to(row)
        self.report.add(
            "inStream", len(files), f"{_format_files(files)} waiting in the stream lane already, in {row.id}"
        )
        return {}

    def _divide(self, row: ManifestRow, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """The files by the manifests of their collection's division, which is made where there is none."""
        services, collection = self._services, CollectionId.parse(str(row.collection))
        held = files_by_successor(services.s3, services.ledger, services.resources, row, files)
        if not held and self._dry_run:
            message = f"{_format_files(files)} to be in the stream lane, out of the collection of {collection.hour}"
            self.report.add("promoted", len(files), message)
            self.report.counts["manifests"] += 1
            return {}
        # A part whose document was damaged has a collection of its own.
        for candidate in () if held else (collection, CollectionId(collection.hour, row.id)):
            divide(services, candidate)
            held = held or files_by_successor(services.s3, services.ledger, services.resources, row, files)
        return held

    def _move(self, row: ManifestRow, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """One supersede; files that exceed it stay in the batch lane's successor, and are moved from there next."""
        services, bucket = self._services, self._services.resources.control_bucket
        now = services.clock()
        document = read_manifest(services.s3, bucket, row, services.resources.file_buckets)
        drafts = cut_drafts(_arrivals(document, files), services.settings, lambda: new_manifest_id(now))
        if self._dry_run:
            self._report_moved(row, files, len(drafts))
            return {}
        urgent = [
            draft.manifest(iso_utc(now), [arrival.file for arrival in draft.arrivals])
            for draft in drafts[:MAX_SUCCESSORS]
        ]
        moved = {file for manifest in urgent for file in manifest.files}
        unmoved = tuple(file for file in document.files if file not in moved)
        # As old as before, so that the alarm for what is open for too long sees its whole age.
        rest = [Manifest(new_manifest_id(now), Lane.BATCH, row.partition, row.queued_at, unmoved)] if unmoved else []
        list(self._pool.map(lambda manifest: write_manifest(services.s3, bucket, manifest), [*urgent, *rest]))
        if not services.ledger.manifests.supersede(row, [*urgent, *rest], REASON, now):
            return self._retry(row, files)
        list(self._pool.map(self._point_to, urgent))
        logger.info(
            "manifest promoted", manifest_id=row.id, files=len(moved), successors=len(urgent), rest=len(unmoved)
        )
        self._report_moved(row, moved, len(urgent))
        exceeding = {arrival.file for draft in drafts[MAX_SUCCESSORS:] for arrival in draft.arrivals}
        return {manifest.id: exceeding for manifest in rest if exceeding}

    def _point_to(self, manifest: ManifestRow | Manifest) -> None:
        write_pointer(self._services, manifest.id, urgent=True)
        self.waiting.add(self._services.settings.shards.of(manifest.id))

    def _retry(self, row: ManifestRow, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """The row has changed concurrently: read it again, up to ``MAX_CHANGES`` times."""
        self._changes[row.id] += 1
        if self._changes[row.id] < MAX_CHANGES:
            return {row.id: files}
        message = (
            f"{_format_files(files)} not moved: manifest {row.id} changed {MAX_CHANGES} times meanwhile, promote again"
        )
        self.report.add("notMoved", len(files), message)
        return {}

    def _report_moved(self, row: ManifestRow, moved: set[ObjectVersion], manifests: int) -> None:
        when = "to be" if self._dry_run else "now"
        stay = row.files - len(moved)
        others = format_count(stay, "other of its manifest stays", "others of its manifest stay")
        rest = f"; {others} in the batch lane" if stay else ""
        into = format_count(manifests, "manifest")
        message = f"{_format_files(moved)} {when} in the stream lane, in {into}, no longer in {row.id}{rest}"
        self.report.add("promoted", len(moved), message)
        self.report.counts["manifests"] += manifests


def _arrivals(document: Manifest, files: set[ObjectVersion]) -> list[RoutedArrival]:
    requested = {Identity.of(file): file for file in files}
    listed = [file for file in document.files if requested.pop(Identity.of(file), None)]
    for file in requested.values():
        raise InvalidDocumentError(f"{file.uri} is not in manifest {document.id}: this is a defect, report it")
    return [RoutedArrival(file, document.partition, Lane.STREAM, REASON, urgent=True) for file in listed]


def _format_files(files: Collection[ObjectVersion]) -> str:
    """Subject and verb of a message: ``s3://bucket/key is``, or ``3 files (first: s3://bucket/key) are``."""
    first = min(file.uri for file in files)
    return f"{first} is" if len(files) == 1 else f"{format_count(len(files), 'file')} (first: {first}) are"


def find_queued(
    services: Services, pool: ThreadPoolExecutor, selection: Selection, report: Report, *, dry_run: bool
) -> tuple[dict[str, set[ObjectVersion]], Exception | None]:
    """The files of QUEUED manifests of the selection, by manifest, from the index: a hint; and the error of a
    collection that could not be divided.

    The collections of its hours are divided; a dry run reports their files. Manifests of the stream lane are included:
    a promote that crashed may have left them without a pointer. Raises ``InvalidInputError``: more than
    ``MAX_QUEUED_FILES`` files of the batch lane.
    """
    divided, fault = ([], None) if dry_run else divide_selected(services, selection)
    listed, stream = (list(open_rows(services, lane, State.QUEUED, selection)) for lane in (Lane.BATCH, Lane.STREAM))
    batch = list({row.id: row for row in (*divided, *listed)}.values())
    if fault is not None:
        report.messages.append(f"files of a collection are not moved, because it could not be divided: {fault}")
    number = sum(row.files for row in batch)
    for manifest in draft_selected(services, selection) if dry_run else ():
        number += len(manifest.files)
        moved = f"{format_count(len(manifest.files), 'file')} of {manifest.partition}"
        report.add("promoted", len(manifest.files), f"{moved} to be in the stream lane, out of the hour's collection")
    if number > MAX_QUEUED_FILES:
        raise InvalidInputError(
            f"the selection holds {format_count(number, 'file')} in {format_count(len(batch), 'manifest')} of the "
            f"batch lane, one promote takes {MAX_QUEUED_FILES:,}: pass a smaller range, or start overnight"
        )
    rows = [*batch, *stream]
    files = {}
    for row, document in zip(rows, pool.map(lambda row: _read(services, row), rows), strict=True):
        if isinstance(document, str):
            report.add("notMoved", row.files, f"manifest {row.id} is left to the run that will fail it: {document}")
        else:
            files[row.id] = set(document.files)
    return files, fault


def _read(services: Services, row: ManifestRow) -> Manifest | str:
    """The manifest, or why it cannot be read."""
    resources = services.resources
    try:
        return read_manifest(services.s3, resources.control_bucket, row, resources.file_buckets)
    except UnusableDocumentError as error:
        return str(error)


def next_promote_step(row: ManifestRow | None) -> NextStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    A manifest that was tried before is promoted like any other: all attempts are left to its successors, files that
    cannot be read are detected again, and what the stream lane cannot convert goes back to the batch lane.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "notRouted", "being routed right now: promote again in some minutes")
    if row.state in (State.SUPERSEDED, State.COLLECTED):
        return NextStep(Step.FOLLOW)
    if row.state == State.QUEUED and row.lane == Lane.STREAM:
        return NextStep(Step.POINT)
    if row.state == State.QUEUED and row.published is None:
        return NextStep(Step.ACT)
    if row.state == State.QUEUED:
        return NextStep(Step.LEAVE, "notMoved", "to be reprocessed by the batch lane: start overnight to do it now")
    return NextStep(Step.LEAVE, "tooLate", _why_too_late(row))


def _why_too_late(row: ManifestRow) -> str:
    if row.state == State.RUNNING:
        return f"being converted in the {row.lane} lane by run {row.owner}: wait for it"
    if row.state == State.PUBLISHING:
        return "being published: wait a moment"
    if row.state == State.DONE:
        return "converted already: explain shows the result"
    advice = advise_reprocess(row.id)
    return f"FAILED ({(row.reason or '').removesuffix(f'; {advice}')}): {advice}"
