"""How the stream lane does, as the sweep measures it: it runs also where the streaming job and its watch do not."""

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
    """What the alarms on the stream lane read."""

    oldest_minutes: float
    """Age of its oldest open manifest; 0: none is open."""
    silent: bool
    """Its window is open, and its row has no valid heartbeat. True as well while a run starts."""


def measure_stream(services: Services) -> StreamHealth:
    """Measure it now. The age is from the index, which can lag by some seconds."""
    now, row = services.clock(), services.ledger.stream.get()
    in_window = row.window_until is not None and now < datetime.fromisoformat(row.window_until)
    # Each state has its oldest manifest first.
    oldest = [next(services.ledger.manifests.open(Lane.STREAM, state), None) for state in OPEN_STATES]
    ages = [now - datetime.fromisoformat(manifest.created_at) for manifest in oldest if manifest is not None]
    return StreamHealth(
        max(ages, default=timedelta()) / timedelta(minutes=1), in_window and not has_valid_heartbeat(services, row)
    )
