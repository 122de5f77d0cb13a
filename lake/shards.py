"""The shards of the stream lane, and the rule that assigns a manifest to one of them. Pure."""

from dataclasses import dataclass
from hashlib import sha256

FIRST_SHARD = "1"
"""The shard that every stage has."""
SHARD_ARGUMENT = "stream_shard"
"""Name of the argument with the shard of a job; a job without it has the first shard."""
MAX_SHARDS = 20
"""Each shard is a Glue job, and one request of each call of ``route``."""


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a stage, numbered from 1 on. They divide the manifests evenly among themselves."""

    jobs: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, range(1, self.jobs + 1)))

    def of(self, manifest: str) -> str:
        """Name of the shard of a manifest, by a hash of its id: the same while the number of shards is the same."""
        return str(1 + int.from_bytes(sha256(manifest.encode()).digest()[:8]) % self.jobs)
