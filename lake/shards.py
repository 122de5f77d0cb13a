"""Which streaming job converts a manifest of the stream lane: the shards of the lane, and the rule. Pure."""

from dataclasses import dataclass
from hashlib import sha256

FIRST_SHARD = "1"
"""The shard that every stage has."""
SHARD_ARGUMENT = "stream_shard"
"""The argument with the name of the job's shard; a job without it is the job of the first one."""
MAX_SHARDS = 20
"""Each is a Glue job, and one request of each call of ``route``."""


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a stage, numbered from 1 on. They divide the manifests evenly among themselves."""

    jobs: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, range(1, self.jobs + 1)))

    def of(self, manifest: str) -> str:
        """Name of the shard of a manifest: always the same for the same number of shards, by a hash of its id."""
        return str(1 + int.from_bytes(sha256(manifest.encode()).digest()[:8]) % self.jobs)
