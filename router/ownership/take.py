"""The protocol of ownership: every arrival gets exactly one owner, a manifest of the stream lane or a part.

Order of the writes: the intent, which names all arrivals of the invocation; the arrival rows, each with its owner; the
owner's document, with exactly the files whose rows name it; the owner's row, if it has none. Then a manifest gets a
pointer in the inbox; a part enters its hour's collection in the transaction of its row. Only after all these writes may
an event be acknowledged. The intent is deleted when every arrival has an owner.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lake.dataset_rules import folder_of, format_taken, named_datasets
from lake.faults import NO_ANSWER, NoAnswer
from lake.ledger import ArrivalRow, Part, State
from lake.manifest import Identity, Lane, Manifest, ObjectVersion, new_manifest_id
from lake.settings.operation import CLOCK_MARGIN, MIN_KEPT
from lake.settings.routing import name_of_folder
from lake.time import iso_utc
from router.ownership.owner import (
    UNANSWERED,
    Draft,
    RoutedArrival,
    RowStamp,
    count_ignored,
    create_owner,
    cut_drafts,
    is_data,
    record_drafts,
    record_ignored,
)
from router.ownership.resolve import delete_intent, resolve_owners, without_known, write_intent
from router.services import Services, in_parallel
from router.telemetry import logger


class ArrivalOutcome(StrEnum):
    OWNED = "owned"
    """This invocation's QUEUED manifest has it, or this invocation's part, which is in a collection."""
    DUPLICATE = "duplicate"
    """An existing manifest or part already has it, or it is IGNORED as before."""
    IGNORED = "ignored"
    """No rule selects it; the ledger has the reason."""
    UNSETTLED = "unsettled"
    """Not known yet: its event must not be acknowledged, so that it is redelivered."""


@dataclass(slots=True)
class Ownership:
    """The outcome of every arrival, the queued manifests and the collected parts."""

    outcomes: dict[Identity, ArrivalOutcome] = field(default_factory=dict)
    manifests: list[Manifest] = field(default_factory=list)
    """Manifests of the stream lane."""
    parts: list[Part] = field(default_factory=list)
    """Parts of the batch lane."""
    waiting_in_stream: dict[str, set[Identity]] = field(default_factory=dict)
    """By shard: owned and duplicate arrivals whose QUEUED manifest needs the shard's streaming job."""
    beyond_dataset_limit: int = 0
    """Number of arrivals that are IGNORED because ``max_datasets`` has no room for their dataset."""
    newly_ignored: dict[ObjectVersion, str] = field(default_factory=dict)
    """Reasons of the files that became IGNORED, except files whose names mark them as not data."""

    def set_outcome(self, files: Iterable[ObjectVersion], outcome: ArrivalOutcome) -> None:
        self.outcomes.update((Identity.of(file), outcome) for file in files)

    def add_waiting(self, files: Iterable[ObjectVersion], shard: str) -> None:
        self.waiting_in_stream.setdefault(shard, set()).update(map(Identity.of, files))

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
    """Own the routed arrivals, and record the reason of each ignored one. Each object version may be given once.

    A routed arrival is recorded as IGNORED if its dataset exceeds ``max_datasets``, or if its folder would share a
    dataset. After most errors the affected arrivals are UNSETTLED, and their intent is left to the sweep. Raises
    ``BotoCoreError`` or ``ClientError``, before any arrival row is written, if known or old rows were not read,
    ``ledger.keep_days`` was not recorded, or the intent was not written. ``skip_known`` reads the rows of all arrivals
    first, which is cheaper than refused writes if most arrivals have an owner. ``intent`` is the key of an existing
    intent with all routed arrivals; None: a new one is written.
    """
    ledger, shards, now = services.ledger, services.settings.shards, services.clock()
    stamp = RowStamp(iso_utc(now), services.settings.ledger.expiry(now), services.resources.input_bucket)
    arrivals, ownership = list(routed), Ownership()
    ownership.set_outcome([*(arrival.file for arrival in arrivals), *ignored], ArrivalOutcome.UNSETTLED)

    def new_drafts(arrivals: Iterable[RoutedArrival]) -> list[Draft]:
        return cut_drafts(arrivals, services.settings, lambda: new_manifest_id(now))

    undecided = without_known(ledger, arrivals) if skip_known else arrivals
    if services.settings.ledger.keep_days and (undecided or ignored):
        ledger.arrivals.record_expiry(services.settings.ledger.keep_days, now)
    recent, old_rows, recent_ignored = divide_by_expiry(services, undecided, ignored, now)
    admitted, unanswered, refused, beyond = divide_by_dataset_limit(services, recent)
    if intent is None and (admitted or unanswered):
        intent = write_intent(services, [*admitted, *unanswered], now)
    recorded, owned_elsewhere = record_drafts(ledger, new_drafts(admitted), stamp)
    new, unowned, given = record_ignored(ledger, {**recent_ignored, **refused}, stamp)
    offered = {Identity.of(arrival.file): arrival for arrival in (*admitted, *unanswered)}
    orphans, duplicates = resolve_owners(services, [*owned_elsewhere, *old_rows, *given], offered, now)
    adopted, _ = record_drafts(ledger, new_drafts(orphans), stamp)
    recorded += adopted
    owners = in_parallel(lambda draft: create_owner(services, draft, now), recorded)
    left = {arrival.file for arrival in undecided}
    ownership.set_outcome((item.file for item in arrivals if item.file not in left), ArrivalOutcome.DUPLICATE)
    old_ignored = (file for file in ignored if file not in recent_ignored)
    ownership.set_outcome([*old_ignored, *(row.file for row in unowned)], ArrivalOutcome.IGNORED)
    ownership.beyond_dataset_limit = beyond
    ownership.newly_ignored = {row.file: row.reason for row in new if is_data(row.file.key)}
    count_ignored(ledger, ownership.newly_ignored, adopted, now)
    ownership.set_outcome((file for file, _ in duplicates), ArrivalOutcome.DUPLICATE)
    for file, row in duplicates:
        if row is not None and row.state == State.QUEUED and row.lane == Lane.STREAM:
            ownership.add_waiting([file], shards.of(row.id))
    for draft, owner in zip(recorded, owners, strict=True):
        if owner is NO_ANSWER:
            continue
        ownership.set_outcome(draft.files, ArrivalOutcome.OWNED)
        if isinstance(owner, Manifest):
            ownership.manifests.append(owner)
            ownership.add_waiting(owner.files, shards.of(owner.id))
        else:
            ownership.parts.append(owner)
    settled = (ownership.outcomes[Identity.of(item.file)] != ArrivalOutcome.UNSETTLED for item in arrivals)
    if intent is not None and all(settled):
        delete_intent(services, intent)
    return ownership


def divide_by_expiry(
    services: Services, routed: Sequence[RoutedArrival], ignored: Mapping[ObjectVersion, str], now: datetime
) -> tuple[list[RoutedArrival], list[ArrivalRow], dict[ObjectVersion, str]]:
    """Returns arrivals that may be new, rows of older arrivals, and ignored files that may be new, with reasons.

    An older arrival is never recorded as new, because its row may have expired after its conversion, and it would be
    converted twice. A new IGNORED row would let a later rule adopt it. Older ones without a row are only logged.
    """
    limit = now - MIN_KEPT + CLOCK_MARGIN
    files = (*(arrival.file for arrival in routed), *ignored)
    oldest = None
    if any(_is_before(file, limit) for file in files):
        oldest = services.settings.ledger.oldest_arrival(services.ledger.arrivals.expiries(), now)
    if oldest is None:
        return list(routed), [], dict(ignored)
    recent = [arrival for arrival in routed if not _is_before(arrival.file, oldest)]
    old = [arrival.file for arrival in routed if _is_before(arrival.file, oldest)]
    rows = in_parallel(services.ledger.arrivals.get, old)
    forgotten = [file for file, row in zip(old, rows, strict=True) if row is None]
    if forgotten:
        logger.error(
            "files without a row are older than ledger.keep_days: they may have been converted, so they are not taken; "
            "look for them in the lake, and put a file that is missing there into the input again",
            files=len(forgotten),
            first=forgotten[0].uri,
        )
    kept = {file: reason for file, reason in ignored.items() if not _is_before(file, oldest)}
    return recent, [row for row in rows if row is not None], kept


def _is_before(file: ObjectVersion, oldest: datetime) -> bool:
    return datetime.fromisoformat(file.arrived_at) < oldest


def divide_by_dataset_limit(
    services: Services, routed: Sequence[RoutedArrival]
) -> tuple[list[RoutedArrival], list[RoutedArrival], dict[ObjectVersion, str], int]:
    """Returns arrivals to own, arrivals without an answer about their dataset, and files to ignore with reasons.

    The last result is the number of files beyond ``max_datasets``. A dataset that a rule names is never refused and
    does not count. A dataset has the files of only one folder.
    """
    named, limit = named_datasets(services.settings.datasets), services.settings.max_datasets
    folders = {arrival.file: _folder(services, arrival) for arrival in routed}
    found: dict[str, set[str]] = {}
    for arrival in routed:
        name = arrival.partition.dataset
        found.setdefault(name, set()).add("" if name in named else folders[arrival.file] or name)
    # If several new folders have one dataset name, the folder that is spelled like it is preferred.
    asked = {name: name if name in asking else min(asking) for name, asking in found.items()}
    datasets = services.ledger.datasets
    answers: dict[str, str | NoAnswer | None]
    try:
        answers = {**datasets.admit(asked, limit)}
    except UNANSWERED as error:
        logger.warning("no answer about datasets", datasets=len(asked), error=str(error))
        answers = {name: datasets.folders.get(name, NO_ANSWER) for name in asked}
    admitted, unanswered, refused = [], [], {}
    beyond: Counter[str] = Counter()
    for arrival in routed:
        name, folder = arrival.partition.dataset, folders[arrival.file]
        if (owner := answers[name]) is NO_ANSWER:
            unanswered.append(arrival)
        elif owner is None:
            refused[arrival.file] = (
                f"keys have created the maximum number of datasets (max_datasets = {limit:,}), and its folder would "
                "add one: raise max_datasets and deploy; then the sweep takes recent files, and the state machine "
                "backfill takes all"
            )
            beyond[name] += 1
        elif name in named or folder in (owner, None):
            admitted.append(arrival)
        else:
            prefix = arrival.file.key.partition(f"{folder}/")[0] + f"{folder}/"
            refused[arrival.file] = format_taken(str(folder), name, f"which the folder {owner!r} uses", prefix)
    if beyond:
        logger.error(
            "files of further datasets are ignored: max_datasets is reached",
            max_datasets=limit,
            files=beyond.total(),
            datasets=sorted(beyond)[:10],
        )
    return admitted, unanswered, refused, beyond.total()


def _folder(services: Services, arrival: RoutedArrival) -> str | None:
    """The folder that gives a file its dataset by today's rules; None if the dataset has another cause."""
    if arrival.file.bucket != services.resources.input_bucket:
        return None
    folder = folder_of(arrival.file.key, services.settings.datasets)
    return folder if folder is not None and name_of_folder(folder) == arrival.partition.dataset else None
