"""How each shard of the stream lane does, as the sweep measures it: it runs where no job and no watch does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from router.streaming import has_valid_heartbeat

if TYPE_CHECKING:
    from router.services import Services


@dataclass(frozen=True, slots=True)
class StreamHealth:
    """What the alarms on a shard of the stream lane read."""

    oldest_minutes: float
    """Age of its oldest open manifest; 0: none is open."""
    silent: bool
    """Its window is open, and its row has no valid heartbeat. True as well while a run starts."""


def measure_stream(services: Services) -> dict[str, StreamHealth]:
    """Measure each shard now. The ages are from the index, which can lag by some seconds."""
    now, shards = services.clock(), services.settings.shards.names
    created = _oldest(services)
    health = {}
    for shard in shards:
        row = services.ledger.stream.of(shard).get()
        in_window = row.window_until is not None and now < datetime.fromisoformat(row.window_until)
        age = now - datetime.fromisoformat(created[shard]) if shard in created else timedelta()
        silent = in_window and not has_valid_heartbeat(services, row)
        health[shard] = StreamHealth(age / timedelta(minutes=1), silent)
    return health


def _oldest(services: Services) -> dict[str, str]:
    """When the oldest open manifest of each shard was made; a shard without one is missing.

    The index lists the manifests of a state by age, so that the first one of each shard is its oldest.
    """
    shards = services.settings.shards
    oldest: dict[str, str] = {}
    for state in OPEN_STATES:
        missing = set(shards.names)
        for manifest in services.ledger.manifests.open(Lane.STREAM, state):
            shard = shards.of(manifest.partition.dataset, manifest.id)
            if shard in missing:
                missing.remove(shard)
                oldest[shard] = min(oldest.get(shard, manifest.created_at), manifest.created_at)
            if not missing:
                break
    return oldest
