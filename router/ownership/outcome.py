"""The outcome of each arrival of an invocation."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from lake.ledger import ManifestRow, Part, State
from lake.ledger.table import RefusedError
from lake.manifest import Identity, Lane, Manifest, ObjectVersion
from lake.shards import Shards

UNANSWERED = (BotoCoreError, ClientError, RefusedError, HybridRouterError)
"""Errors after which a request may or may not have been applied."""


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
