"""The protocol of ownership: every arrival gets exactly one owner, a manifest of the stream lane or a part.

Order of the writes: the intent, which names all arrivals of the invocation; arrival rows, each naming its owner; the
owner's document with exactly the files whose rows name it; its row, on condition that it has none. A manifest has a
pointer in the inbox then; a part enters the collection of its hour in the same transaction. An event may be
acknowledged after all of them only. The intent is deleted once every arrival has an owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from lake.ledger import Part
from lake.manifest import Identity, Lane, Manifest, ObjectVersion, new_manifest_id
from lake.time import iso_utc
from router.ownership.collect import collect_part
from router.ownership.count_ignored import count_ignored
from router.ownership.dataset_limit import divide_by_dataset_limit
from router.ownership.draft import Draft, RoutedArrival, cut_drafts
from router.ownership.enqueue import enqueue_manifest
from router.ownership.expired import divide_by_expiry, recent_only
from router.ownership.intent import delete_intent, write_intent
from router.ownership.known import without_known
from router.ownership.outcome import UNANSWERED, ArrivalOutcome, Ownership
from router.ownership.record import RecordedDraft, RowStamp, record_drafts, record_ignored
from router.ownership.resolve import resolve_owners
from router.services import PARALLEL_REQUESTS, Services
from router.telemetry import logger


def take_ownership(
    services: Services,
    routed: Iterable[RoutedArrival],
    ignored: Mapping[ObjectVersion, str],
    *,
    skip_known: bool = False,
    intent: str | None = None,
) -> Ownership:
    """Own the routed arrivals, and record the reason of each ignored one.

    A routed arrival of a dataset beyond ``max_datasets``, or of a folder that would share one, is recorded as IGNORED.
    Each object version may be given once.
    A request that fails does not raise: its arrivals are UNSETTLED.

    Parameters
    ----------
    skip_known
        Read the rows of all arrivals first, because most have an owner: a read costs less than a refused write.
    intent
        Key of an intent that names all routed arrivals already; None: one is written.
    """
    ledger, now = services.ledger, services.clock()
    stamp = RowStamp(iso_utc(now), services.settings.ledger.expiry(now), services.resources.input_bucket)
    ownership = Ownership()

    def new_drafts(arrivals: Iterable[RoutedArrival]) -> list[Draft]:
        return cut_drafts(arrivals, services.settings, lambda: new_manifest_id(now))

    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        arrivals = without_known(ledger, pool, routed, ownership) if skip_known else list(routed)
        arrivals, old_rows, forgotten = divide_by_expiry(services, pool, arrivals, now)
        ownership.set_outcome([*(row.file for row in old_rows), *forgotten], ArrivalOutcome.UNSETTLED)
        looked_at = {Identity.of(arrival.file) for arrival in arrivals} | set(ownership.outcomes)
        ignored, old_ignored = recent_only(services, ignored, now)
        ownership.set_outcome(old_ignored, ArrivalOutcome.IGNORED)
        admitted, unanswered, refused, beyond = divide_by_dataset_limit(services, pool, arrivals)
        ignored, arrivals = {**ignored, **refused}, [*admitted, *unanswered]
        ownership.beyond_dataset_limit = beyond
        if intent is None and arrivals:
            intent = _announce(services, arrivals, ownership, now)
            if intent is None:
                arrivals, admitted, unanswered = [], [], []
        # Their intent is kept, because they have no outcome yet.
        ownership.set_outcome((arrival.file for arrival in unanswered), ArrivalOutcome.UNSETTLED)
        recorded, owned_elsewhere = record_drafts(ledger, pool, new_drafts(admitted), ownership, stamp)
        owned_elsewhere += old_rows
        owned_elsewhere += record_ignored(ledger, pool, ignored, ownership, stamp)
        offered = {Identity.of(arrival.file): arrival for arrival in arrivals}
        orphans = resolve_owners(services, owned_elsewhere, offered, ownership, now)
        adopted, _ = record_drafts(ledger, pool, new_drafts(orphans), ownership, stamp)
        recorded += adopted
        owners = list(pool.map(lambda draft: _create_owner(services, draft, now), recorded))
    count_ignored(ledger, ownership, adopted, now)
    for draft, owner in zip(recorded, owners, strict=True):
        if owner is None:
            ownership.set_outcome(draft.files, ArrivalOutcome.UNSETTLED)
        elif isinstance(owner, Part):
            ownership.parts.append(owner)
        else:
            ownership.add_manifest(owner, services.settings.shards)
    if intent is not None and all(ownership.outcomes[identity] != ArrivalOutcome.UNSETTLED for identity in looked_at):
        delete_intent(services, intent)
    return ownership


def _create_owner(services: Services, recorded: RecordedDraft, now: datetime) -> Manifest | Part | None:
    """The owner of a draft's files; None if it may not exist."""
    if recorded.draft.lane == Lane.STREAM:
        return enqueue_manifest(services, recorded, now)
    return collect_part(services, recorded, now)


def _announce(services: Services, arrivals: list[RoutedArrival], ownership: Ownership, now: datetime) -> str | None:
    """Write the intent; None: it has no answer, and all of its arrivals are UNSETTLED."""
    try:
        return write_intent(services, arrivals, now)
    except UNANSWERED as error:
        logger.warning("no answer to the write of an intent", arrivals=len(arrivals), error=str(error))
        ownership.set_outcome((arrival.file for arrival in arrivals), ArrivalOutcome.UNSETTLED)
        return None
