"""How the stream lane does, as the sweep measures it: it runs where no job and no watch does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from router.services import Services
from router.stream.runs import has_valid_heartbeat


@dataclass(frozen=True, slots=True)
class StreamHealth:
    """What the alarms on the stream lane read."""

    oldest_minutes: float
    """Age of its oldest open manifest; 0: none is open."""
    silent: tuple[str, ...]
    """Shards whose window is open and whose row has no valid heartbeat. Also a shard whose run is starting."""


def measure_stream(services: Services) -> StreamHealth:
    """Measure the lane now. The ages are from the index, which can lag by some seconds."""
    now = services.clock()
    # The index lists the manifests of a state by age.
    oldest = [
        first.created_at
        for state in OPEN_STATES
        if (first := next(iter(services.ledger.manifests.open(Lane.STREAM, state)), None)) is not None
    ]
    age = now - datetime.fromisoformat(min(oldest)) if oldest else timedelta()
    silent = []
    for shard in services.settings.shards.names:
        row = services.ledger.stream.of(shard).get()
        in_window = row.window_until is not None and now < datetime.fromisoformat(row.window_until)
        if in_window and not has_valid_heartbeat(services, row):
            silent.append(shard)
    return StreamHealth(age / timedelta(minutes=1), tuple(silent))
