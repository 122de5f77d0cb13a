"""The protocol of ownership: every arrival gets exactly one manifest.

Order of the writes: arrival rows, each naming its manifest; the manifest's document with exactly the files whose rows
name it; its row QUEUED, on condition that it has none; its pointer in the inbox (stream lane). An event may be
acknowledged after all of them only.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lake.manifest import new_manifest_id
from router.ownership.draft import cut_drafts
from router.ownership.enqueue import enqueue_manifest
from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.record import record_drafts, record_ignored
from router.ownership.resolve import resolve_owners
from router.services import PARALLEL_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lake.manifest import ObjectVersion
    from router.ownership.draft import Draft, RoutedArrival
    from router.services import Services


def take_ownership(
    services: Services, routed: Iterable[RoutedArrival], ignored: Mapping[ObjectVersion, str]
) -> Ownership:
    """Own the routed arrivals, and record the reason of each ignored one.

    Each object version may be given once. A request that fails does not raise: its arrivals are UNSETTLED.
    """
    ledger, now = services.ledger, services.clock()
    ownership = Ownership()

    def new_drafts(arrivals: Iterable[RoutedArrival]) -> list[Draft]:
        return cut_drafts(arrivals, services.settings, lambda: new_manifest_id(now))

    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        recorded, owned_elsewhere = record_drafts(ledger, pool, new_drafts(routed), ownership, now)
        owned_elsewhere += record_ignored(ledger, pool, ignored, ownership, now)
        orphans = resolve_owners(ledger, owned_elsewhere, ownership, now)
        adopted, _ = record_drafts(ledger, pool, new_drafts(orphans), ownership, now)
        recorded += adopted
        manifests = list(pool.map(lambda draft: enqueue_manifest(services, draft, now), recorded))
    for draft, manifest in zip(recorded, manifests, strict=True):
        if manifest is None:
            ownership.set_outcome(draft.files, ArrivalOutcome.UNSETTLED)
        else:
            ownership.add_manifest(manifest)
    return ownership
