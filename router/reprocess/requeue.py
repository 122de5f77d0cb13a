"""Queueing manifests for another conversion: one conditional update each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.counted import format_count
from lake.errors import UnusableDocumentError
from lake.ledger import State
from lake.successors import files_by_successor
from router.reprocess.inputs import InputLook
from router.reprocess.next_step import NextReprocessStep, ReprocessStep, has_unreadable_files, next_reprocess_step
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import ThreadPoolExecutor

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from lake.partition import Partition
    from router.reprocess.report import ReprocessReport
    from router.reprocess.request import ReprocessRequest
    from router.services import Services

MAX_CHANGES = 5
"""Number of times that a row may change concurrently before the manifest is left as it is."""

LINES_GIVEN_BACK = (
    "rejected lines of this hour were given back repaired: if a setting that was changed since lets them through now, "
    "they are rows twice"
)


class Reprocessing:
    """The work of one invocation. Each manifest is one conditional update, so all of it can be repeated."""

    def __init__(
        self, services: Services, pool: ThreadPoolExecutor, request: ReprocessRequest, report: ReprocessReport
    ) -> None:
        self._services = services
        self._pool = pool
        self._request = request
        self._report = report
        self._inputs = InputLook(services, pool)
        self._given_back: dict[Partition, bool] = {}

    def queue_named(self, files: Mapping[str, set[ObjectVersion] | None]) -> None:
        """Queue manifests by id; a superseded one is followed to the successors that hold the files; None: to all."""
        remaining = dict(files)
        ended: set[str] = set()
        while remaining:
            results = list(self._pool.map(self._queue, remaining))
            following: dict[str, set[ObjectVersion] | None] = {}
            for (manifest, part), (row, step) in zip(remaining.items(), results, strict=True):
                if row is not None and step.step == ReprocessStep.FOLLOW:
                    for successor, held in self._successors(row, part).items():
                        following[successor] = _union(following.get(successor, set()), held)
                else:
                    ended.add(manifest)
                    self._add(manifest, row, step, named=True)
            remaining = {manifest: part for manifest, part in following.items() if manifest not in ended}

    def queue_selected(self, rows: Iterable[ManifestRow]) -> None:
        """Queue the manifests of a page; those that stay are counted. Successors are listed by themselves."""
        candidates = [row for row in rows if row.state not in (State.SUPERSEDED, State.ABANDONED)]
        results = self._pool.map(lambda row: self._queue(row.id, row), candidates)
        for row, (current, step) in zip(candidates, results, strict=True):
            if step.step != ReprocessStep.FOLLOW:
                self._add(row.id, current, step, named=False)

    def _queue(self, manifest: str, row: ManifestRow | None = None) -> tuple[ManifestRow | None, NextReprocessStep]:
        """The row that the step was decided by, and the step, which was taken. ``row`` is a consistent read."""
        manifests, request = self._services.ledger.manifests, self._request
        for _ in range(MAX_CHANGES):
            current = row or manifests.get(manifest)
            step = next_reprocess_step(current, request.only, request.id)
            if current is None or step.step != ReprocessStep.QUEUE or request.dry_run:
                return current, step
            self._services.ledger.partitions.touch(current.partition, self._services.clock())
            if manifests.force(current, self._services.clock(), request.id):
                logger.info("manifest reprocessed", manifest_id=manifest, generation=current.generation + 1)
                return current, step
            row = None
        return current, NextReprocessStep(
            ReprocessStep.LEAVE, "open", f"changed {MAX_CHANGES} times meanwhile: reprocess it again"
        )

    def _successors(
        self, row: ManifestRow, files: set[ObjectVersion] | None
    ) -> Mapping[str, set[ObjectVersion] | None]:
        if files is None:
            return dict.fromkeys(row.superseded_by)
        services = self._services
        try:
            return dict(files_by_successor(services.s3, services.ledger, services.resources, row, files))
        except UnusableDocumentError as error:
            self._report.add("unusable", f"the successors of manifest {row.id} cannot be followed: {error}")
            return {}

    def _add(self, manifest: str, row: ManifestRow | None, step: NextReprocessStep, *, named: bool) -> None:
        if row is not None and step.step == ReprocessStep.QUEUE:
            message = _format_queued(row, dry_run=self._request.dry_run)
            if self._request.dry_run and (found := self._inputs.describe(row)) is not None:
                message += f"; {found}"
            if row.published is not None and self._has_resubmissions(row.partition):
                message += f"; {LINES_GIVEN_BACK}"
            self._report.add_queued(row, message)
        else:
            self._report.add(step.count, f"manifest {manifest} {step.why}" if named else None)

    def _has_resubmissions(self, partition: Partition) -> bool:
        if partition not in self._given_back:
            self._given_back[partition] = bool(self._services.ledger.resubmissions.of(partition))
        return self._given_back[partition]


def _union(left: set[ObjectVersion] | None, right: set[ObjectVersion] | None) -> set[ObjectVersion] | None:
    return None if left is None or right is None else left | right


def _format_queued(row: ManifestRow, *, dry_run: bool) -> str:
    when = "would be" if dry_run else "is"
    why = f"FAILED: {row.reason}" if row.state == State.FAILED else "DONE"
    if has_unreadable_files(row):
        why = "DONE, and files of it could not be read"
    files = format_count(row.files, "file")
    return (
        f"manifest {row.id} ({row.partition}, {files}) {when} queued in generation {row.generation + 1}; it was {why}"
    )
