"""Both lanes under load, with real Glue runs on the local cloud."""

from __future__ import annotations

import json
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any

from bench.input_files import Recipe, generate
from lake.settings import BatchSettings, DatasetRule, PeakSettings, Settings, StreamSettings
from tests.chaos.glue_world import OVER, GlueWorld
from tests.chaos.inputs import Body
from tests.chaos.processes import clients

if TYPE_CHECKING:
    from local.cloud import LocalCloud

WINDOW_SECONDS = 20
"""The batching window of the queue of arrivals, and its largest batch."""
WINDOW_MESSAGES = 1000
PUTTERS = 8
BODIES = 32
GROWTH = 1.25
"""The oldest age of the last quarter may be so much above that of the quarter before."""
SLACK_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Latencies:
    """From put to published, in seconds; and the age of the oldest unconverted file in each quarter of the load."""

    files: int
    rate: float
    """Files per second that were really put."""
    p50: float
    p95: float
    oldest: tuple[float, ...]
    micro_batches: int

    @property
    def keeps_up(self) -> bool:
        """Whether the age of the oldest unconverted file has stopped growing."""
        return self.oldest[-1] <= self.oldest[-2] * GROWTH + SLACK_SECONDS


def settings() -> Settings:
    """Those of production, but for the clock on the wall and a quick end of the streaming run."""
    return Settings(
        "load",
        datasets=(DatasetRule("orders", "orders/"),),
        peak=PeakSettings(hours=()),
        stream=StreamSettings(idle_minutes=0.5),
        batch=BatchSettings(flex=False),
    )


def bodies(size: int) -> list[Body]:
    """Different files of about ``size`` bytes of flat records, to be used in turn: no column's page sees one twice."""
    return [Body(generate(Recipe("flat", 1, size, seed), 0), (), ()) for seed in range(BODIES)]


def world_on(cloud: LocalCloud, chosen: Settings) -> GlueWorld:
    """A deployment of its own, without faults."""
    world = GlueWorld.create(clients(), Random(0), chosen, versions=True)
    assert isinstance(world, GlueWorld)
    world.cloud_glue = cloud.client("glue")
    world.glue = _NoStart(world.cloud_glue)  # type: ignore[assignment]
    world.deploy()
    return world


class _NoStart:
    """Glue for Lambdas: the run is there already."""

    def __init__(self, glue: Any) -> None:
        self._glue = glue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._glue, name)

    def start_job_run(self, JobName: str) -> dict[str, str]:  # noqa: N803
        return {"JobRunId": f"none of {JobName}"}


def stream_load(cloud: LocalCloud, files: int, size: int, rate: float) -> Latencies:
    """Put files at a steady rate while the stream lane works, with the queue's windows as on AWS."""
    world = world_on(cloud, settings())
    contents = bodies(size)
    job = world.resources.stream_job
    run = world.start(job, None)
    put_at: dict[str, float] = {}
    putting = threading.Thread(target=_put_at_rate, args=(world, contents, files, rate, put_at))
    putting.start()
    begun = time.time()
    while putting.is_alive() or world.queue:
        putting.join(WINDOW_SECONDS)
        window = list(world.queue)
        for first in range(0, len(window), WINDOW_MESSAGES):
            world.route(window[first : first + WINDOW_MESSAGES])
    world.wait("the backlog to be empty", lambda: not world.open_rows())
    published = _published(world)
    world.wait("the end of the streaming run", lambda: world.state(job, run) in OVER)
    return _latencies(begun, put_at, published)


def _put_at_rate(world: GlueWorld, contents: list[Body], files: int, rate: float, put_at: dict[str, float]) -> None:
    start = time.monotonic()
    pause = threading.Event()

    def put(number: int) -> None:
        pause.wait(max(0.0, start + number / rate - time.monotonic()))
        key = f"orders/urgent/{number}.ndjson"
        put_at[key] = time.time()
        _, name, event = world.put(key, contents[number % BODIES])
        world.queue[f"{name}-{number}"] = {**event, "messageId": f"{name}-{number}"}

    with ThreadPoolExecutor(PUTTERS) as pool:
        list(pool.map(put, range(files)))


def _published(world: GlueWorld) -> dict[str, float]:
    """When each file's manifest was published; every file has to be."""
    control = world.resources.control_bucket
    found = {}
    for page in world.clients.s3.get_paginator("list_objects_v2").paginate(Bucket=control, Prefix="results/"):
        for item in page.get("Contents", []):
            result = json.loads(world.clients.s3.get_object(Bucket=control, Key=item["Key"])["Body"].read())
            at = datetime.fromisoformat(result["published_at"]).timestamp()
            for source in result["sources"]:
                found[source["uri"].partition("-input/")[2]] = at
    return found


def _latencies(begun: float, put_at: dict[str, float], published: dict[str, float]) -> Latencies:
    assert published.keys() == put_at.keys(), f"{len(put_at)} files were put, {len(published)} are published"
    waits = sorted(published[key] - put_at[key] for key in put_at)
    last = max(put_at.values())
    quarters = []
    for quarter in range(4):
        moments = [begun + (last - begun) * (quarter + step / 10) / 4 for step in range(1, 11)]
        ages = [
            max((now - put_at[key] for key in put_at if put_at[key] <= now < published[key]), default=0.0)
            for now in moments
        ]
        quarters.append(statistics.median(ages))
    return Latencies(
        len(put_at),
        len(put_at) / (last - min(put_at.values())),
        statistics.median(waits),
        waits[int(len(waits) * 0.95) - 1],
        tuple(quarters),
        len(set(published.values())),
    )


@dataclass(frozen=True, slots=True)
class Throughput:
    """Of one batch run."""

    files: int
    bytes: int
    task_seconds: float
    """Summed over cores."""
    run_seconds: float
    """From StartJobRun to the end, the start of Spark included."""

    @property
    def megabytes_per_core(self) -> float:
        """Per second."""
        return self.bytes / 1e6 / self.task_seconds


def batch_load(cloud: LocalCloud, files: int, size: int, *, manifest_files: int = 10_000) -> Throughput:
    """One batch run over many files."""
    chosen = settings()
    world = world_on(cloud, replace(chosen, batch=replace(chosen.batch, manifest_files=manifest_files)))
    contents = bodies(size)
    for number in range(files):
        _, name, event = world.put(f"orders/{number}.ndjson", contents[number % BODIES])
        world.queue[name] = event
    while world.queue:
        world.route(list(world.queue)[:WINDOW_MESSAGES])
    job = world.resources.batch_job
    started = time.monotonic()
    for document in world.plan_runs():
        state = world.finish(job, world.start(job, None, run=document))
        assert state == "SUCCEEDED", state
    seconds = time.monotonic() - started
    assert not world.open_rows()
    control, milliseconds = world.resources.control_bucket, 0
    listed = world.clients.s3.list_objects_v2(Bucket=control, Prefix="results/")["Contents"]
    for item in listed:
        result = json.loads(world.clients.s3.get_object(Bucket=control, Key=item["Key"])["Body"].read())
        milliseconds += result["task_milliseconds"]
    total = sum(len(contents[number % BODIES].data) for number in range(files))
    return Throughput(files, total, milliseconds / 1000, seconds)
