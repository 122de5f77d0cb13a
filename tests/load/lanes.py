"""Both lanes under load, with real Glue runs on the local cloud."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from bench.input_files import Recipe, generate
from lake.settings import BatchSettings, DatasetRule, PeakSettings, Settings, StreamSettings
from lake.settings.routing import DAYS
from tests.chaos.glue_world import OVER, GlueWithoutStarts, GlueWorld
from tests.chaos.inputs import Body
from tests.chaos.processes import clients
from tests.load.published import published_manifests
from tests.roles import create_unlimited_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.cloud import LocalCloud

WINDOW_MESSAGES = 1000
"""Its maximum batch."""
PUT_THREADS = 8
BODIES = 32
URGENT_EVERY = 10
MAX_AGE_GROWTH = 1.25
"""Age of the oldest file in the last quarter of the load, divided by its age in the quarter before."""
MAX_AGE_SLACK_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds from put to published, and the age of the oldest unconverted file in each quarter of the load."""

    files: int
    rate: float
    """Files per second, as measured."""
    peak: tuple[float, float]
    """p50 and p95 of peak files, in seconds ..."""
    urgent: tuple[float, float]
    """... and of urgent ones."""
    max_ages: tuple[float, ...]
    """In seconds, one for each quarter."""
    manifests: int

    @property
    def keeps_up(self) -> bool:
        """Whether the age of the oldest unconverted file has stopped growing."""
        return self.max_ages[-1] <= self.max_ages[-2] * MAX_AGE_GROWTH + MAX_AGE_SLACK_SECONDS


def load_test_settings() -> Settings:
    """The production defaults without peak hours; the streaming run ends soon after its last file."""
    return Settings(
        "load",
        datasets=(DatasetRule("orders", "orders/"),),
        peak=PeakSettings(hours=()),
        stream=StreamSettings(idle_minutes=0.5),
        batch=BatchSettings(engines=("glue",)),
    )


def bodies(size: int) -> list[Body]:
    """Different files of about ``size`` bytes of flat records, used in turn: no page of a column repeats itself."""
    return [Body(generate(Recipe("flat", 1, size, seed), 0), (), ()) for seed in range(BODIES)]


def new_world(cloud: LocalCloud, settings: Settings) -> GlueWorld:
    """A new deployment on the local cloud, without faults."""
    world = GlueWorld.create(clients(), Random(0), settings, versions=True)
    assert isinstance(world, GlueWorld)
    world.cloud_glue = cloud.client("glue")
    world.glue = GlueWithoutStarts(world.cloud_glue)  # type: ignore[assignment]
    # The local cloud lets no run begin whose role Glue may not assume.
    world.job_role = create_unlimited_role(cloud.client("iam"), f"load-{world.resources.stream_job}")
    world.deploy()
    return world


def stream_load(cloud: LocalCloud, files: int, size: int, rate: float) -> Latencies:
    """Put ``rate`` files per second while the stream lane converts them, with the queue's windows as on AWS.

    They are peak files, and one of ``URGENT_EVERY`` is urgent.
    """
    settings = replace(load_test_settings(), peak=PeakSettings(hours=("00:00-24:00",), days=DAYS))
    world = new_world(cloud, settings)
    named = named_files(bodies(size), files, urgent_every=URGENT_EVERY)
    job = world.resources.stream_job
    run = world.start(job, None)
    put_at: dict[str, float] = {}
    putting = threading.Thread(target=put_at_rate, args=(world, named, rate, put_at))
    putting.start()
    started = time.time()
    route_while_put(world, putting, settings.input.event_window_seconds)
    world.wait("the backlog to be empty", lambda: not world.open_rows())
    published, manifests = published_files(world)
    world.wait("the end of the streaming run", lambda: world.state(job, run) in OVER)
    return _latencies(started, put_at, published, manifests)


def put_and_route(world: GlueWorld, files: int, size: int) -> int:
    """Put files that are not urgent, and route all of them; returns their bytes."""
    contents = bodies(size)
    for number in range(files):
        _, name, event = world.put(f"orders/{number}.ndjson", contents[number % BODIES])
        world.queue[name] = event
    while world.queue:
        world.route(list(world.queue)[:WINDOW_MESSAGES])
    return sum(len(contents[number % BODIES].data) for number in range(files))


def route_while_put(world: GlueWorld, putting: threading.Thread, window_seconds: float) -> None:
    """Route the events of each window until the last file is put and routed."""
    while putting.is_alive() or world.queue:
        putting.join(window_seconds)
        window = list(world.queue)
        for first in range(0, len(window), WINDOW_MESSAGES):
            world.route(window[first : first + WINDOW_MESSAGES])


def named_files(contents: list[Body], files: int, *, urgent_every: int) -> list[tuple[str, Body]]:
    """Keys, each with a body; one of ``urgent_every`` is urgent."""
    folders = ["urgent/" if number % urgent_every == 0 else "" for number in range(files)]
    return [(f"orders/{folder}{n}.ndjson", contents[n % BODIES]) for n, folder in enumerate(folders)]


def put_at_rate(world: GlueWorld, files: Sequence[tuple[str, Body]], rate: float, put_at: dict[str, float]) -> None:
    """Put files, and their events into the queue; ``put_at`` gets the seconds since the epoch of each, by key.

    The name of a message ends with a hyphen and the number of its file.
    """
    start = time.monotonic()
    pause = threading.Event()

    def put(number: int) -> None:
        pause.wait(max(0.0, start + number / rate - time.monotonic()))
        key, body = files[number]
        put_at[key] = time.time()
        _, name, event = world.put(key, body)
        world.queue[f"{name}-{number}"] = {**event, "messageId": f"{name}-{number}"}

    with ThreadPoolExecutor(PUT_THREADS) as pool:
        list(pool.map(put, range(len(files))))


def published_files(world: GlueWorld) -> tuple[dict[str, float], int]:
    """Seconds since the epoch at which each published file was published, by key; and the number of manifests."""
    manifests = list(published_manifests(world.clients.s3, world.resources.control_bucket))
    return {key: item.published for item in manifests for key in item.keys}, len(manifests)


def _latencies(started: float, put_at: dict[str, float], published: dict[str, float], manifests: int) -> Latencies:
    assert published.keys() == put_at.keys(), f"{len(put_at)} files were put, {len(published)} are published"
    last = max(put_at.values())
    max_ages = []
    for quarter in range(4):
        moments = [started + (last - started) * (quarter + step / 10) / 4 for step in range(1, 11)]
        ages = [
            max((now - put_at[key] for key in put_at if put_at[key] <= now < published[key]), default=0.0)
            for now in moments
        ]
        max_ages.append(statistics.median(ages))
    return Latencies(
        len(put_at),
        len(put_at) / (last - min(put_at.values())),
        percentiles([published[key] - put for key, put in put_at.items() if "/urgent/" not in key]),
        percentiles([published[key] - put for key, put in put_at.items() if "/urgent/" in key]),
        tuple(max_ages),
        manifests,
    )


def percentiles(seconds: list[float]) -> tuple[float, float]:
    """Median, and what 95 of 100 of them do not exceed."""
    return statistics.median(seconds), sorted(seconds)[int(len(seconds) * 0.95) - 1]
