"""Urgent files among a backlog of peak files: how long they take from put to published."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.settings import PeakSettings
from lake.settings.routing import DAYS
from tests.chaos.glue_world import MAX_WAIT_SECONDS, OVER
from tests.load.lanes import (
    bodies,
    load_test_settings,
    named_files,
    new_world,
    percentiles,
    published_files,
    put_and_route,
    put_at_rate,
    route_while_put,
)

if TYPE_CHECKING:
    from local.cloud import LocalCloud

MIN_BYTES_PER_SECOND = 5e6
"""A stream that is slower is taken for one that has stopped."""


@dataclass(frozen=True, slots=True)
class UrgentLatencies:
    """Seconds from put to published of urgent files, and what they were among."""

    files: int
    p50: float
    p95: float
    backlog_bytes: int
    after: int
    """Files of the backlog that were published after the last urgent one."""


def urgent_load(cloud: LocalCloud, backlog_files: int, size: int, files: int, rate: float) -> UrgentLatencies:
    """Put ``rate`` urgent files a second, of a hundredth of ``size`` bytes, while the stream converts a backlog."""
    settings = replace(load_test_settings(), peak=PeakSettings(hours=("00:00-24:00",), days=DAYS))
    world = new_world(cloud, settings)
    small = bodies(size // 100)
    backlog_bytes = put_and_route(world, backlog_files, size)
    job = world.resources.stream_job
    run = world.start(job, None)
    world.wait("the begin of the backlog", lambda: any(row["state"] == State.RUNNING for row in world.open_rows()))
    put_at: dict[str, float] = {}
    putting = threading.Thread(
        target=put_at_rate, args=(world, named_files(small, files, urgent_every=1), rate, put_at)
    )
    putting.start()
    route_while_put(world, putting, settings.input.event_window_seconds)
    seconds = MAX_WAIT_SECONDS + backlog_bytes / MIN_BYTES_PER_SECOND
    world.wait("the backlog to be empty", lambda: not world.open_rows(), seconds)
    published, _ = published_files(world)
    world.wait("the end of the streaming run", lambda: world.state(job, run) in OVER)
    last = max(published[key] for key in put_at)
    return UrgentLatencies(
        len(put_at),
        *percentiles([published[key] - put for key, put in put_at.items()]),
        backlog_bytes,
        sum(at > last for key, at in published.items() if key not in put_at),
    )
