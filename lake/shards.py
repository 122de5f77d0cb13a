"""Which streaming job converts a manifest of the stream lane: the shards of the lane, and the rule. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_SHARD = "1"
"""The shard that every stage has. Its job also converts what waits in inboxes of shards that no longer exist."""
MAX_SHARDS = 20
"""Each is a Glue job with alarms of its own, and one request of each call of ``route``."""


class Spread(StrEnum):
    """What the numbered shards divide among themselves."""

    DATASET = "dataset"
    """The manifests of a dataset stay together."""
    MANIFEST = "manifest"
    """Each manifest goes its own way: the shards have about equal work."""


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a stage: numbered ones, from 1 on, and those that datasets have for themselves."""

    jobs: int = 1
    """Number of the numbered ones."""
    spread: str = Spread.DATASET
    own: Mapping[str, str] = field(default_factory=dict)
    """Name of its own shard by dataset; several datasets can have the same one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all shards, ``FIRST_SHARD`` first."""
        return (*_numbered(self.jobs), *sorted(set(self.own.values())))

    def of(self, dataset: str, manifest: str) -> str:
        """Name of the shard of a manifest: always the same for the same settings, by a hash of dataset or manifest."""
        if dataset in self.own:
            return self.own[dataset]
        text = manifest if self.spread == Spread.MANIFEST else dataset
        return str(1 + int.from_bytes(sha256(text.encode()).digest()[:8]) % self.jobs)

    def of_dataset(self, dataset: str) -> tuple[str, ...]:
        """Names of the shards that a manifest of this dataset can go to."""
        if self.spread == Spread.MANIFEST and dataset not in self.own:
            return _numbered(self.jobs)
        return (self.of(dataset, ""),)

    def to_text(self) -> str:
        """As the stack's output has them; the inverse of ``from_text``."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Shards:
        """The inverse of ``to_text``."""
        return cls(**json.loads(text))


def _numbered(jobs: int) -> tuple[str, ...]:
    return tuple(map(str, range(1, jobs + 1)))
