"""The same files through the batch lane and through the stream lane: how fast each converts them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lake.settings import PeakSettings
from lake.settings.routing import DAYS
from tests.chaos.glue_world import OVER
from tests.load.lanes import load_test_settings, new_world, put_and_route
from tests.load.published import published_manifests

if TYPE_CHECKING:
    from local.cloud import LocalCloud
    from tests.chaos.glue_world import GlueWorld


@dataclass(frozen=True, slots=True)
class LaneSpeeds:
    """Megabytes of 10^6 bytes a second of all cores, from the first conversion's start until the last was published."""

    batch: float
    stream: float


def lane_speeds(cloud: LocalCloud, files: int, size: int) -> LaneSpeeds:
    """Let one run of each lane convert files that wait for it."""
    return LaneSpeeds(_batch(cloud, files, size), _stream(cloud, files, size))


def _batch(cloud: LocalCloud, files: int, size: int) -> float:
    world = new_world(cloud, load_test_settings())
    total = put_and_route(world, files, size)
    for document in world.plan_runs():
        world.finish(world.resources.batch_job, world.start(world.resources.batch_job, None, run=document))
    return _speed(world, total)


def _stream(cloud: LocalCloud, files: int, size: int) -> float:
    peak = PeakSettings(hours=("00:00-24:00",), days=DAYS)
    world = new_world(cloud, replace(load_test_settings(), peak=peak))
    total, job = put_and_route(world, files, size), world.resources.stream_job
    run = world.start(job, None)
    world.wait("the backlog to be empty", lambda: not world.open_rows())
    world.wait("the end of the streaming run", lambda: world.state(job, run) in OVER)
    return _speed(world, total)


def _speed(world: GlueWorld, total: int) -> float:
    assert not world.open_rows()
    published = list(published_manifests(world.clients.s3, world.resources.control_bucket))
    seconds = max(item.published for item in published) - min(item.started for item in published)
    return total / 1e6 / seconds
