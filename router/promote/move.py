"""Moving files out of queued manifests of the batch lane: documents, one supersede, pointers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError
from lake.manifest import Identity, Lane, Manifest, new_manifest_id, read_manifest, write_manifest
from lake.successors import files_by_successor
from lake.time import iso_utc
from router.ownership import RoutedArrival, cut_drafts, write_pointer
from router.promote.next_step import Step, decide
from router.promote.report import format_files
from router.streaming import ensure_running
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import ThreadPoolExecutor

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from router.promote.report import Report
    from router.services import Services

MAX_SUCCESSORS = 90
"""In the stream lane, of one supersede: below DynamoDB's 100 actions of a transaction."""
TRIES = 20
"""How often a row may move on under our eyes."""
REASON = "promoted to the stream lane by hand"


class Promotion:
    """One invocation's work. Every step reads the row first, so all of it can be repeated after any crash."""

    def __init__(self, services: Services, pool: ThreadPoolExecutor, report: Report, *, dry_run: bool) -> None:
        self._services = services
        self._pool = pool
        self._report = report
        self._dry_run = dry_run
        self._refused: Counter[str] = Counter()

    def move(self, wanted: Mapping[str, set[ObjectVersion]]) -> None:
        """Bring the files into the stream lane, as far as they can be, and make sure that the streaming job runs."""
        todo = dict(wanted)
        while todo:
            manifest = next(iter(todo))
            for following, part in self._step(manifest, todo.pop(manifest)).items():
                todo[following] = todo.get(following, set()) | part
        waiting = self._report.counts["promoted"] + self._report.counts["inStream"]
        if waiting and not self._dry_run and ensure_running(self._services):
            logger.info("streaming run started")

    def _step(self, manifest: str, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """Do what the manifest's row asks for; where to look next for which files."""
        row = self._services.ledger.manifests.get(manifest)
        decision = decide(row)
        if row is None or decision.step == Step.LEAVE:
            self._report.add(decision.count, len(files), f"{format_files(files)} {decision.why}")
            return {}
        if decision.step == Step.FOLLOW:
            return files_by_successor(self._services.s3, self._services.resources, row, files)
        if decision.step == Step.MOVE:
            return self._move(row, files)
        if not self._dry_run:
            write_pointer(self._services, row.id)
        self._report.add(
            "inStream", len(files), f"{format_files(files)} waiting in the stream lane already, in {row.id}"
        )
        return {}

    def _move(self, row: ManifestRow, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """One supersede; what does not fit into it stays in the batch lane's successor, and is moved from there."""
        services, bucket = self._services, self._services.resources.control_bucket
        now = services.clock()
        document = read_manifest(services.s3, bucket, row.id, (services.resources.input_bucket,))
        drafts = cut_drafts(_arrivals(document, files), services.settings, lambda: new_manifest_id(now))
        if self._dry_run:
            self._report_moved(row, files, len(drafts))
            return {}
        urgent = [
            draft.manifest(iso_utc(now), [arrival.file for arrival in draft.arrivals])
            for draft in drafts[:MAX_SUCCESSORS]
        ]
        moved = {file for manifest in urgent for file in manifest.files}
        others = tuple(file for file in document.files if file not in moved)
        rest = [Manifest(new_manifest_id(now), Lane.BATCH, row.partition, iso_utc(now), others)] if others else []
        list(self._pool.map(lambda manifest: write_manifest(services.s3, bucket, manifest), [*urgent, *rest]))
        if not services.ledger.manifests.supersede([row], [*urgent, *rest], REASON, now):
            return self._again(row, files)
        list(self._pool.map(lambda manifest: write_pointer(services, manifest.id), urgent))
        logger.info("manifest promoted", manifest_id=row.id, files=len(moved), successors=len(urgent), rest=len(others))
        self._report_moved(row, moved, len(urgent))
        later = {arrival.file for draft in drafts[MAX_SUCCESSORS:] for arrival in draft.arrivals}
        return {manifest.id: later for manifest in rest if later}

    def _again(self, row: ManifestRow, files: set[ObjectVersion]) -> dict[str, set[ObjectVersion]]:
        """The row has moved on: it is read and decided again, so many times."""
        self._refused[row.id] += 1
        if self._refused[row.id] < TRIES:
            return {row.id: files}
        message = f"{format_files(files)} not moved: manifest {row.id} changed {TRIES} times meanwhile, promote again"
        self._report.add("notMoved", len(files), message)
        return {}

    def _report_moved(self, row: ManifestRow, moved: set[ObjectVersion], manifests: int) -> None:
        said = "to be" if self._dry_run else "now"
        stay = row.files - len(moved)
        rest = f"; {stay:,} others of its manifest stay in the batch lane" if stay else ""
        into = f"{manifests:,} manifest{'s' if manifests > 1 else ''}"
        message = f"{format_files(moved)} {said} in the stream lane, in {into}, no longer in {row.id}{rest}"
        self._report.add("promoted", len(moved), message)
        self._report.counts["manifests"] += manifests


def _arrivals(document: Manifest, files: set[ObjectVersion]) -> list[RoutedArrival]:
    """The files as the document lists them, on their way to the stream lane."""
    wanted = {Identity.of(file): file for file in files}
    listed = [file for file in document.files if wanted.pop(Identity.of(file), None)]
    for file in wanted.values():
        raise InvalidDocumentError(f"{file.uri} is not in manifest {document.id}: report this, it must not happen")
    return [RoutedArrival(file, document.partition, Lane.STREAM, REASON) for file in listed]
