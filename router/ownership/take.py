"""The protocol of ownership: every arrival gets exactly one owner, a manifest of the stream lane or a part.

Order of the writes: the intent, which names all arrivals of the invocation; arrival rows, each naming its owner; the
owner's document with exactly the files whose rows name it; its row, on condition that it has none. A manifest has a
pointer in the inbox then; a part enters the collection of its hour in the same transaction. An event may be
acknowledged after all of them only. The intent is deleted once every arrival has an owner.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from lake.faults import NO_ANSWER, NoAnswer
from lake.ledger import Part
from lake.manifest import Identity, Lane, Manifest, ObjectVersion, new_manifest_id
from lake.time import iso_utc
from router.ownership.limits import divide_by_dataset_limit, divide_by_expiry, recent_only
from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.owner import (
    Draft,
    RecordedDraft,
    RoutedArrival,
    RowStamp,
    collect_part,
    count_ignored,
    cut_drafts,
    enqueue_manifest,
    is_data,
    record_drafts,
    record_ignored,
    register_datasets,
)
from router.ownership.resolve import delete_intent, resolve_owners, without_known, write_intent
from router.services import PARALLEL_REQUESTS, Services


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
    Each object version may be given once. A request that fails does not raise: its arrivals are UNSETTLED, and their
    intent is left to the sweep. Raises ``BotoCoreError``, ``ClientError``: ``ledger.keep_days`` was not remembered or
    the intent was not written, so no row was. ``skip_known``: read the rows of all arrivals first, because most have an
    owner: a read costs less than a refused write. ``intent``: key of an intent that names all routed arrivals already;
    None: one is written.
    """
    ledger, now = services.ledger, services.clock()
    stamp = RowStamp(iso_utc(now), services.settings.ledger.expiry(now), services.resources.input_bucket)
    arrivals, ownership = list(routed), Ownership()
    ownership.set_outcome([*(arrival.file for arrival in arrivals), *ignored], ArrivalOutcome.UNSETTLED)

    def new_drafts(arrivals: Iterable[RoutedArrival]) -> list[Draft]:
        return cut_drafts(arrivals, services.settings, lambda: new_manifest_id(now))

    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        undecided = without_known(ledger, pool, arrivals) if skip_known else arrivals
        if services.settings.ledger.keep_days and (undecided or ignored):
            ledger.arrivals.remember_expiry(services.settings.ledger.keep_days, now)
        recent, old_rows = divide_by_expiry(services, pool, undecided, now)
        recorded_as_ignored, old_ignored = recent_only(services, ignored, now)
        admitted, unanswered, refused, beyond = divide_by_dataset_limit(services, pool, recent)
        if intent is None and (admitted or unanswered):
            intent = write_intent(services, [*admitted, *unanswered], now)
        recorded, owned_elsewhere = record_drafts(ledger, pool, new_drafts(admitted), stamp)
        new, unowned, given = record_ignored(ledger, pool, {**recorded_as_ignored, **refused}, stamp)
        offered = {Identity.of(arrival.file): arrival for arrival in (*admitted, *unanswered)}
        orphans, duplicates = resolve_owners(services, [*owned_elsewhere, *old_rows, *given], offered, now)
        adopted, _ = record_drafts(ledger, pool, new_drafts(orphans), stamp)
        recorded += adopted
        register_datasets(services, pool, recorded)
        owners = list(pool.map(lambda draft: _create_owner(services, draft, now), recorded))
    left = {arrival.file for arrival in undecided}
    ownership.set_outcome((item.file for item in arrivals if item.file not in left), ArrivalOutcome.DUPLICATE)
    ownership.set_outcome([*old_ignored, *(row.file for row in unowned)], ArrivalOutcome.IGNORED)
    ownership.beyond_dataset_limit = beyond
    ownership.newly_ignored = {row.file: row.reason for row in new if is_data(row.file.key)}
    count_ignored(ledger, ownership.newly_ignored, adopted, now)
    ownership.add_duplicates(duplicates, services.settings.shards)
    for draft, owner in zip(recorded, owners, strict=True):
        if owner is not NO_ANSWER:
            ownership.set_outcome(draft.files, ArrivalOutcome.OWNED)
            ownership.add_owner(owner, services.settings.shards)
    settled = (ownership.outcomes[Identity.of(item.file)] != ArrivalOutcome.UNSETTLED for item in arrivals)
    if intent is not None and all(settled):
        delete_intent(services, intent)
    return ownership


def _create_owner(services: Services, recorded: RecordedDraft, now: datetime) -> Manifest | Part | NoAnswer:
    """The owner of a draft's files; ``NO_ANSWER``: it may not exist."""
    if recorded.draft.lane == Lane.STREAM:
        return enqueue_manifest(services, recorded, now)
    return collect_part(services, recorded, now)
