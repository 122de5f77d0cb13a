"""Arrivals whose rows exist already: a duplicate, or an arrival to adopt because nothing will convert it otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger import ArrivalRow, Ledger, ManifestRow, State
from lake.manifest import Identity, Lane
from lake.partition import Partition
from router.ownership.draft import RoutedArrival
from router.ownership.outcome import UNANSWERED, ArrivalOutcome, Ownership
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services

OWNER_GRACE = timedelta(minutes=5)
"""An owner whose manifest has no row after this time is presumed dead.

Longer than a call of ``take_ownership`` usually lasts: ``route`` and ``backfill`` time out before. A sweep may run
longer, but each of its calls owns one page of a listing or one intent, and takes the time at its start. Only duplicate
work depends on this, not safety: a live owner that was presumed dead is refused its QUEUED row, and the arrivals have
been adopted.
"""


def resolve_owners(
    services: Services,
    owned_elsewhere: Iterable[ArrivalRow],
    offered: Mapping[Identity, RoutedArrival],
    ownership: Ownership,
    now: datetime,
) -> list[RoutedArrival]:
    """Set the outcome of arrivals whose owner exists; returns those that are ready for adoption.

    Adopted are arrivals whose owner is ABANDONED, and those that were IGNORED and that a rule routes today. ``offered``
    are the arrivals that are routed today. An arrival whose owner may still be alive keeps its outcome, UNSETTLED.
    """
    orphans = []
    owners: dict[str, ManifestRow | None] = {}
    for row in owned_elsewhere:
        arrival = offered.get(Identity.of(row.file))
        if row.manifest is None:
            if arrival is None:
                ownership.set_outcome([row.file], ArrivalOutcome.DUPLICATE)
            else:
                orphans.append(_no_longer_ignored(arrival, row))
            continue
        try:
            owner = _owner(services.ledger, owners, row, now)
        except UNANSWERED as error:
            logger.warning("no answer about an owner", uri=row.file.uri, manifest_id=row.manifest, error=str(error))
            continue
        if owner is None:
            continue
        if owner.state == State.ABANDONED:
            orphans.append(_orphan(row, arrival))
            continue
        ownership.set_outcome([row.file], ArrivalOutcome.DUPLICATE)
        if owner.state == State.QUEUED and owner.lane == Lane.STREAM:
            ownership.add_waiting([row.file], services.settings.shards.of(owner.id))
    return orphans


def _owner(ledger: Ledger, owners: dict[str, ManifestRow | None], row: ArrivalRow, now: datetime) -> ManifestRow | None:
    """The owner's row, put ABANDONED first where the owner is presumed dead; None: it may still be alive."""
    assert row.manifest is not None
    if row.manifest not in owners:
        owners[row.manifest] = ledger.manifests.get(row.manifest)
    if owners[row.manifest] is None and now - datetime.fromisoformat(row.recorded_at) > OWNER_GRACE:
        owners[row.manifest] = ledger.manifests.abandon(row.manifest, now)
    return owners[row.manifest]


def _no_longer_ignored(arrival: RoutedArrival, row: ArrivalRow) -> RoutedArrival:
    """The arrival as it was recorded, in the lane of today: an earlier one had neither a lane nor a partition."""
    partition = Partition.of(arrival.partition.dataset, datetime.fromisoformat(row.file.arrived_at))
    reason = f"{arrival.reason} (was IGNORED: {row.reason})"
    return RoutedArrival(row.file, partition, arrival.lane, reason, row, arrival.urgent)


def _orphan(row: ArrivalRow, offered: RoutedArrival | None) -> RoutedArrival:
    """The arrival as its first owner recorded it: partition and lane are fixed. It is as urgent as it is today."""
    assert row.partition is not None
    assert row.lane is not None
    urgent = offered is not None and offered.urgent
    return RoutedArrival(row.file, row.partition, row.lane, f"{row.reason} (adopted from {row.manifest})", row, urgent)
