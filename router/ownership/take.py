"""The protocol of ownership: every arrival gets exactly one owner, a manifest of the stream lane or a part.

Order of the writes: the intent, which names all arrivals of the invocation; arrival rows, each naming its owner; the
owner's document with exactly the files whose rows name it; its row, on condition that it has none. A manifest has a
pointer in the inbox then; a part enters the collection of its hour in the same transaction. An event may be
acknowledged after all of them only. The intent is deleted once every arrival has an owner.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lake.faults import NO_ANSWER, NoAnswer
from lake.ledger import ManifestRow, Part, State
from lake.manifest import Identity, Lane, Manifest, ObjectVersion, new_manifest_id
from lake.shards import Shards
from lake.time import iso_utc
from router.ownership.limits import divide_by_dataset_limit, divide_by_expiry, recent_only
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


class ArrivalOutcome(StrEnum):
    OWNED = "owned"
    """A QUEUED manifest of this invocation has it, or a part of this invocation that is in a collection."""
    DUPLICATE = "duplicate"
    """An existing manifest or part has it already, or it is IGNORED as before."""
    IGNORED = "ignored"
    """No rule selects it; the ledger has the reason."""
    UNSETTLED = "unsettled"
    """Not known yet: its event must not be acknowledged, so that it is redelivered."""


@dataclass(slots=True)
class Ownership:
    """The outcome of every arrival, the manifests that were enqueued and the parts that were collected."""

    outcomes: dict[Identity, ArrivalOutcome] = field(default_factory=dict)
    manifests: list[Manifest] = field(default_factory=list)
    """Manifests of the stream lane."""
    parts: list[Part] = field(default_factory=list)
    """Parts of the batch lane."""
    waiting_in_stream: dict[str, set[Identity]] = field(default_factory=dict)
    """By shard: arrivals, owned and duplicate, whose QUEUED manifest needs its streaming job to run."""
    beyond_dataset_limit: int = 0
    """Number of arrivals that are IGNORED because ``max_datasets`` has no room for their dataset."""
    newly_ignored: dict[ObjectVersion, str] = field(default_factory=dict)
    """Reasons of the files that became IGNORED, except files whose names mark them as not data."""

    def set_outcome(self, files: Iterable[ObjectVersion], outcome: ArrivalOutcome) -> None:
        self.outcomes.update((Identity.of(file), outcome) for file in files)

    def add_owner(self, owner: Manifest | Part, shards: Shards) -> None:
        """Add a manifest that is QUEUED now, or a part that is in its collection."""
        if isinstance(owner, Manifest):
            self.manifests.append(owner)
            self.add_waiting(owner.files, shards.of(owner.id))
        else:
            self.parts.append(owner)

    def add_waiting(self, files: Iterable[ObjectVersion], shard: str) -> None:
        self.waiting_in_stream.setdefault(shard, set()).update(map(Identity.of, files))

    def add_duplicates(self, files: Iterable[tuple[ObjectVersion, ManifestRow | None]], shards: Shards) -> None:
        """Add arrivals with the row of their owner; None: they are IGNORED as before."""
        for file, owner in files:
            self.set_outcome([file], ArrivalOutcome.DUPLICATE)
            if owner is not None and owner.state == State.QUEUED and owner.lane == Lane.STREAM:
                self.add_waiting([file], shards.of(owner.id))

    def include(self, other: "Ownership") -> None:
        self.outcomes.update(other.outcomes)
        self.manifests += other.manifests
        self.parts += other.parts
        for shard, waiting in other.waiting_in_stream.items():
            self.waiting_in_stream.setdefault(shard, set()).update(waiting)
        self.beyond_dataset_limit += other.beyond_dataset_limit
        self.newly_ignored |= other.newly_ignored

    @property
    def bytes(self) -> int:
        return sum(manifest.bytes for manifest in self.manifests) + sum(part.bytes for part in self.parts)

    def count(self, outcome: ArrivalOutcome) -> int:
        return sum(value == outcome for value in self.outcomes.values())


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
        admitted, unanswered, refused, beyond = divide_by_dataset_limit(services, recent)
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
