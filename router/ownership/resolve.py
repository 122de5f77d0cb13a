"""Arrivals whose rows name another owner: a duplicate, or an arrival to adopt because its owner is presumed dead."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import Identity, Lane
from router.ownership.draft import RoutedArrival
from router.ownership.outcome import UNANSWERED, ArrivalOutcome
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger import ArrivalRow, Ledger, ManifestRow
    from router.ownership.outcome import Ownership

OWNER_GRACE = timedelta(minutes=5)
"""An owner whose manifest has no row after this time is presumed dead.

Longer than a call of ``take_ownership`` lasts: ``route`` and ``backfill`` time out before, and a sweep owns one page
of a listing per call. Only duplicate work depends on it, not safety: a live owner that was presumed dead is refused its
QUEUED row.
"""


def resolve_owners(
    ledger: Ledger, owned_elsewhere: Iterable[ArrivalRow], ownership: Ownership, now: datetime
) -> list[RoutedArrival]:
    """Set the outcome of arrivals whose owner exists; returns those whose owner is ABANDONED, ready for adoption.

    An arrival whose owner may still be alive keeps its outcome, UNSETTLED.
    """
    orphans = []
    owners: dict[str, ManifestRow | None] = {}
    for row in owned_elsewhere:
        if row.manifest is None:
            ownership.set_outcome([row.file], ArrivalOutcome.DUPLICATE)
            continue
        try:
            owner = _owner(ledger, owners, row, now)
        except UNANSWERED as error:
            logger.warning("no answer about an owner", uri=row.file.uri, manifest_id=row.manifest, error=str(error))
            continue
        if owner is None:
            continue
        if owner.state == State.ABANDONED:
            orphans.append(_orphan(row))
            continue
        ownership.set_outcome([row.file], ArrivalOutcome.DUPLICATE)
        if owner.state == State.QUEUED and owner.lane == Lane.STREAM:
            ownership.waiting_in_stream.add(Identity.of(row.file))
    return orphans


def _owner(ledger: Ledger, owners: dict[str, ManifestRow | None], row: ArrivalRow, now: datetime) -> ManifestRow | None:
    """The owner's row, put ABANDONED first where the owner is presumed dead; None: it may still be alive."""
    assert row.manifest is not None
    if row.manifest not in owners:
        owners[row.manifest] = ledger.manifests.get(row.manifest)
    if owners[row.manifest] is None and now - datetime.fromisoformat(row.recorded_at) > OWNER_GRACE:
        owners[row.manifest] = ledger.manifests.abandon(row.manifest, now)
    return owners[row.manifest]


def _orphan(row: ArrivalRow) -> RoutedArrival:
    """The arrival as its first owner recorded it: partition and lane are fixed."""
    assert row.partition is not None
    assert row.lane is not None
    return RoutedArrival(row.file, row.partition, row.lane, f"{row.reason} (adopted from {row.manifest})", row)
