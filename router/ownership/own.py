"""Ownership: every arrival ends in exactly one manifest, whatever dies or repeats on the way.

Order of writes: arrival rows, each naming its manifest -> the manifest document with exactly those that are its own ->
its row QUEUED, only if no row is there -> the inbox pointer (stream). Only then may an event be acknowledged.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError, OwnershipError
from lake.ledger import ArrivalRow, State
from lake.ledger.table import RefusedError
from lake.manifest import Identity, Lane, new_manifest_id, write_manifest
from lake.time import iso_utc
from router.ownership.draft import Draft, RoutedArrival, cut
from router.ownership.pointer import write_pointer
from router.services import PARALLEL_REQUESTS
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lake.ledger import Ledger, ManifestRow
    from lake.manifest import Manifest, ObjectVersion
    from router.services import Services

OWNER_GRACE = timedelta(minutes=5)
"""Longer than any invocation that takes ownership can live: an owner without a row is dead after it.

Only waste depends on it, not safety: an owner that is given up while it lives is refused its QUEUED row.
"""
UNANSWERED = (BotoCoreError, ClientError, RefusedError, HybridRouterError)


class ArrivalOutcome(StrEnum):
    """What became of an arrival in this invocation."""

    OWNED = "owned"
    """A manifest of this invocation has it, QUEUED."""
    DUPLICATE = "duplicate"
    """A manifest that exists has it already, or it is IGNORED."""
    IGNORED = "ignored"
    """Nobody wants it, and the ledger says why."""
    LATER = "later"
    """Not settled: its event must not be acknowledged, and comes again."""


@dataclass(slots=True)
class Ownership:
    """The outcome of every arrival, and the manifests that came to be."""

    outcomes: dict[Identity, ArrivalOutcome] = field(default_factory=dict)
    manifests: list[Manifest] = field(default_factory=list)
    waiting_in_stream: set[Identity] = field(default_factory=set)
    """Arrivals whose QUEUED manifest needs the streaming job to run: own ones and duplicates."""

    def settle(self, files: Iterable[ObjectVersion], outcome: ArrivalOutcome) -> None:
        """Record an outcome."""
        self.outcomes.update((Identity.of(file), outcome) for file in files)

    def number(self, outcome: ArrivalOutcome) -> int:
        """How many arrivals ended so."""
        return sum(value == outcome for value in self.outcomes.values())


@dataclass(frozen=True, slots=True)
class _Taken:
    """A draft and those of its files whose rows name it."""

    draft: Draft
    files: list[ObjectVersion]


def own(services: Services, routed: Sequence[RoutedArrival], ignored: Mapping[ObjectVersion, str]) -> Ownership:
    """Take ownership of arrivals, and record the reason of those that nobody wants.

    Each object version may be given once. A request that fails does not raise: its arrivals come out as LATER.
    """
    result = Ownership()
    now = services.clock()
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        taken, others = _take(services.ledger, pool, _cut(services, routed, now), result, now)
        others += _ignore(services.ledger, pool, ignored, result, now)
        orphans = _ownerless(services.ledger, others, result, now)
        adopted, _ = _take(services.ledger, pool, _cut(services, orphans, now), result, now)
        todo = [*taken, *adopted]
        for item, manifest in zip(todo, pool.map(lambda one: _enqueue(services, one, now), todo), strict=True):
            if manifest is None:
                result.settle(item.files, ArrivalOutcome.LATER)
                continue
            result.manifests.append(manifest)
            if manifest.lane == Lane.STREAM:
                result.waiting_in_stream.update(map(Identity.of, manifest.files))
    return result


def _cut(services: Services, routed: Iterable[RoutedArrival], now: datetime) -> list[Draft]:
    return cut(routed, services.settings, lambda: new_manifest_id(now))


def _take(
    ledger: Ledger, pool: ThreadPoolExecutor, drafts: Sequence[Draft], result: Ownership, now: datetime
) -> tuple[list[_Taken], list[ArrivalRow]]:
    """Write the arrival rows of all drafts: what became ours, and the rows that name somebody else.

    A draft with a row that cannot be settled ends without a manifest: that row may still be written late, and must
    never name a manifest that does not list its file.
    """
    writes = [
        [(arrival, pool.submit(_write_row, ledger, draft, arrival, now)) for arrival in draft.arrivals]
        for draft in drafts
    ]
    taken, others = [], []
    for draft, written in zip(drafts, writes, strict=True):
        rows = [(arrival, future.result()) for arrival, future in written]
        mine = [arrival.file for arrival, row in rows if row is not None and row.manifest == draft.id]
        unsettled = [arrival.file for arrival, row in rows if row is None]
        result.settle(mine, ArrivalOutcome.LATER if unsettled else ArrivalOutcome.OWNED)
        result.settle(unsettled, ArrivalOutcome.LATER)
        if mine and not unsettled:
            taken.append(_Taken(draft, mine))
        others += [row for _, row in rows if row is not None and row.manifest != draft.id]
    result.settle((row.file for row in others), ArrivalOutcome.LATER)
    return taken, others


def _ignore(
    ledger: Ledger,
    pool: ThreadPoolExecutor,
    ignored: Mapping[ObjectVersion, str],
    result: Ownership,
    now: datetime,
) -> list[ArrivalRow]:
    """Record arrivals that nobody wants; the rows of those that an earlier decision has given to a manifest."""
    rows = [ArrivalRow(file, None, None, None, reason, iso_utc(now)) for file, reason in ignored.items()]
    others = []
    for row, standing in zip(rows, pool.map(lambda row: _settled(ledger, row, ledger.arrivals.put), rows), strict=True):
        ours = standing is not None and standing.manifest is None
        result.settle([row.file], ArrivalOutcome.IGNORED if ours else ArrivalOutcome.LATER)
        if standing is not None and not ours:
            others.append(standing)
    return others


def _write_row(ledger: Ledger, draft: Draft, arrival: RoutedArrival, now: datetime) -> ArrivalRow | None:
    row = ArrivalRow(arrival.file, draft.id, draft.partition, draft.lane, arrival.reason, iso_utc(now))
    standing = arrival.standing
    if standing is None:
        return _settled(ledger, row, ledger.arrivals.put)
    after = _settled(ledger, row, lambda row: ledger.arrivals.adopt(standing, row))
    # The old owner still stands there: the unanswered update may be on its way.
    return None if after is not None and after.manifest == standing.manifest else after


def _settled(ledger: Ledger, row: ArrivalRow, write: Callable[[ArrivalRow], ArrivalRow]) -> ArrivalRow | None:
    """The row that stands after a write, by a consistent read where the write has no answer; None: nobody knows."""
    try:
        return write(row)
    except UNANSWERED as error:
        logger.warning("no answer to the write of an arrival row", uri=row.file.uri, error=str(error))
    try:
        return ledger.arrivals.get(row.file)
    except UNANSWERED:
        return None


def _ownerless(ledger: Ledger, others: Iterable[ArrivalRow], result: Ownership, now: datetime) -> list[RoutedArrival]:
    """Settle arrivals that have an owner; those whose owner is fenced off, ready for adoption."""
    orphans = []
    owners: dict[str, ManifestRow | None] = {}
    for row in others:
        if row.manifest is None:
            result.settle([row.file], ArrivalOutcome.DUPLICATE)
            continue
        try:
            owner = _owner(ledger, owners, row, now)
        except UNANSWERED as error:
            logger.warning("no answer about an owner", uri=row.file.uri, manifest_id=row.manifest, error=str(error))
            continue
        if owner is None:
            continue
        if owner.state == State.ABANDONED:
            assert row.partition is not None
            assert row.lane is not None
            reason = f"{row.reason} (adopted from {row.manifest})"
            orphans.append(RoutedArrival(row.file, row.partition, row.lane, reason, row))
            continue
        result.settle([row.file], ArrivalOutcome.DUPLICATE)
        if owner.state == State.QUEUED and owner.lane == Lane.STREAM:
            result.waiting_in_stream.add(Identity.of(row.file))
    return orphans


def _owner(ledger: Ledger, owners: dict[str, ManifestRow | None], row: ArrivalRow, now: datetime) -> ManifestRow | None:
    """The owner's row; an owner that is dead without one is put ABANDONED first. None: it may still be alive."""
    assert row.manifest is not None
    if row.manifest not in owners:
        owners[row.manifest] = ledger.manifests.get(row.manifest)
    if owners[row.manifest] is None and now - datetime.fromisoformat(row.recorded_at) > OWNER_GRACE:
        owners[row.manifest] = ledger.manifests.abandon(row.manifest, now)
    return owners[row.manifest]


def _enqueue(services: Services, taken: _Taken, now: datetime) -> Manifest | None:
    """Document, row, pointer; None when the manifest does not exist for certain or its pointer does not."""
    manifest = taken.draft.manifest(iso_utc(now), taken.files)
    ledger, bucket = services.ledger, services.resources.control_bucket
    try:
        write_manifest(services.s3, bucket, manifest)
        ledger.datasets.register(manifest.partition.dataset)
        if ledger.manifests.enqueue(manifest) == State.ABANDONED:
            raise OwnershipError(f"manifest {manifest.id} was given up for dead: its events come again")
        if manifest.lane == Lane.STREAM:
            write_pointer(services, manifest.id)
        ledger.partitions.add_arrivals(manifest.partition, len(manifest.files), manifest.bytes)
    except UNANSWERED as error:
        logger.warning("manifest not enqueued", manifest_id=manifest.id, error=str(error))
        return None
    logger.info(
        "manifest enqueued",
        manifest_id=manifest.id,
        lane=manifest.lane,
        partition=str(manifest.partition),
        files=len(manifest.files),
        bytes=manifest.bytes,
    )
    return manifest
