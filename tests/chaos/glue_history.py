"""Histories with real Spark processes that die: one for each injection point, through both lanes."""

import time
from dataclasses import replace
from datetime import timedelta
from random import Random

from lake.settings import Settings
from local.cloud import LocalCloud
from tests.chaos.glue_world import CLUSTER_SETTINGS, OVER, GlueWorld, spark_cluster
from tests.chaos.history import Report
from tests.chaos.injection import Fault
from tests.chaos.inputs import Input, random_body, random_settings
from tests.chaos.world import Clients

BATCH, STREAM = "batch", "stream"
FILES = 4
"""Number of input files per arrival."""
MAX_ROUNDS = 3


def _fault(point: str, when: str, action: str = "kill", nth: int = 1) -> Fault:
    return Fault(point, when, nth, action)


FAULTS: tuple[tuple[str, Fault], ...] = (
    (BATCH, _fault("claim", "before")),
    (STREAM, _fault("claim", "after")),
    (BATCH, _fault("renew", "after")),
    (BATCH, _fault("upload create", "after", "kill worker")),
    (STREAM, _fault("upload part", "before", "kill worker")),
    (BATCH, _fault("upload part", "after", "kill worker")),
    (STREAM, _fault("upload part", "after", "raise")),
    (BATCH, _fault("exclusions", "after")),
    (STREAM, _fault("release", "before")),
    (BATCH, _fault("release", "after")),
    (STREAM, _fault("commit document", "before")),
    (BATCH, _fault("commit document", "after")),
    (STREAM, _fault("commit", "before")),
    (BATCH, _fault("commit", "after")),
    (STREAM, _fault("commit", "after", "lost response")),
    (BATCH, _fault("completion", "before", nth=2)),
    (STREAM, _fault("completion", "after")),
    (BATCH, _fault("dataset row", "after")),
    (STREAM, _fault("result document", "before")),
    (BATCH, _fault("result document", "after")),
    (STREAM, _fault("finish", "before")),
    (BATCH, _fault("finish", "after")),
    (STREAM, _fault("list uploads", "before")),
    (BATCH, _fault("commit", "before", "stall")),
    (STREAM, _fault("commit document", "before", "stall")),
    (BATCH, _fault("completion", "before", "stall")),
)
"""Lane and fault of each history."""
HISTORIES = len(FAULTS) + 2
"""The histories of ``FAULTS``, then two concurrent runs, and a second copy of a slow task."""


def run_glue_history(cloud: LocalCloud, clients: Clients, number: int, seed: int) -> Report:
    """Play history ``number`` (from 0) of ``HISTORIES`` with the inputs of ``seed``."""
    random = Random(seed * 1000 + number)
    world = GlueWorld.on(cloud, clients, random, _settings(random))
    try:
        _play(world, number)
        violations = _final_violations(world)
    except AssertionError as error:
        violations = [f"the history did not end: {error}"]
    return Report(number, tuple(world.fired), tuple(violations), tuple(world.log))


def _play(world: GlueWorld, number: int) -> None:
    if number < len(FAULTS):
        lane, fault = FAULTS[number]
        _arrive(world, lane, broken=fault.point in ("exclusions", "release"))
        _run_with_fault(world, lane, fault)
    elif number == len(FAULTS):
        _run_twice(world)
    else:
        _run_with_second_copy(world)


def _settings(random: Random) -> Settings:
    base = random_settings(random)
    return replace(
        base,
        stream=replace(base.stream, trigger_seconds=1, idle_minutes=0.05, manifest_files=2),
        batch=replace(base.batch, lease_seconds=10, manifest_files=2, max_attempts=3),
        convert=replace(base.convert, split_bytes=300, target_file_bytes=300),
    )


def _arrive(world: GlueWorld, lane: str, *, broken: bool) -> None:
    folder = "orders/urgent" if lane == STREAM else "orders"
    for number in range(FILES):
        content = random_body(world.random, f"f{number}", truncated=broken and number == 0)
        key = f"{folder}/{number}.ndjson"
        version, name, event = world.put(key, content.data)
        world.inputs.append(Input(key, version, content))
        world.queue[name] = event
    world.route(list(world.queue))
    assert not world.queue


def _run_with_fault(world: GlueWorld, lane: str, fault: Fault) -> None:
    """Start runs until one meets the fault, then finish what is open.

    On a busy machine a run can lose a lease of seconds: it leaves the manifest to the next run, and meets no fault.
    """
    job = world.resources.stream_job if lane == STREAM else world.resources.batch_job
    for _ in range(MAX_ROUNDS):
        run = world.start(job, fault, **({} if lane == STREAM else {"run": world.plan_runs()[0]}))
        world.wait("the fault", lambda run=run: world.injected() or world.state(job, run) in OVER)  # type: ignore[misc]
        if world.injected() is not None:
            break
        rows = [(row["id"], row["state"], row["attempt"]) for row in world.open_rows()]
        world.log.append(f"{lane}: {fault} was not reached: {world.state(job, run)}, open: {rows}")
        assert rows, f"{fault} was never reached"
        _wait_for_leases(world)
    else:
        raise AssertionError(f"{fault} was never reached: {world.log[-1]}")
    world.fired.append(fault)
    world.log.append(f"{lane}: {world.injected()}")
    if fault.action == "stall":
        # It resumes after its lease has expired and another run has finished its work.
        _wait_for_leases(world)
        _finish_open_manifests(world)
        world.resume()
        world.finish(job, run)
    else:
        world.finish(job, run)
        _finish_open_manifests(world)


def _wait_for_leases(world: GlueWorld) -> None:
    expired_at = time.monotonic() + world.settings.batch.lease_seconds + 1
    world.wait("the leases to expire", lambda: time.monotonic() > expired_at)


def _finish_open_manifests(world: GlueWorld) -> None:
    """Start further runs of both lanes, like the state machines do, until no manifest is open (at most 3 rounds)."""
    for _ in range(MAX_ROUNDS):
        rows = list(world.open_rows())
        world.log.append(f"open: {[(row['state'], row['attempt'], row['lane']) for row in rows]}")
        if not rows:
            return
        for lane in sorted({row["lane"] for row in rows}):
            if lane == BATCH:
                for document in world.plan_runs() or [world.run_document([row["id"] for row in rows])]:
                    world.finish(world.resources.batch_job, world.start(world.resources.batch_job, None, run=document))
            else:
                world.finish(world.resources.stream_job, world.start(world.resources.stream_job, None))


def _run_twice(world: GlueWorld) -> None:
    _arrive(world, BATCH, broken=False)
    (document,) = world.plan_runs()
    job = world.resources.batch_job
    for run in [world.start(job, None, run=document) for _ in range(2)]:
        world.finish(job, run)
    _finish_open_manifests(world)


def _run_with_second_copy(world: GlueWorld) -> None:
    """A task stalls after an upload and never continues; Spark's second copy of it, on another host, ends the run."""
    fault = _fault("upload part", "after", "stall")
    _arrive(world, BATCH, broken=False)
    (document,) = world.plan_runs()
    job, environment = world.resources.batch_job, world.worker_environment(fault)
    with spark_cluster(world.marks / "cluster", environment) as master:
        run = world.start(job, fault, run=document, conf=world.spark_conf({**CLUSTER_SETTINGS, "spark.master": master}))
        state = world.finish(job, run)
        world.log.append(f"second copy: {world.injected()}")
        assert world.injected() is not None, f"{fault} was never reached: {state}"
        assert state == "SUCCEEDED", f"no second copy has ended the run: {state}"
        world.fired.append(fault)
    _finish_open_manifests(world)


def _final_violations(world: GlueWorld) -> list[str]:
    """Sweep before and after the grace period, then check every promise."""
    for hours in (3, 6):
        world.clock_offset = timedelta(hours=hours)
        world.sweep()
    world.clock_offset = timedelta()
    return world.checker.violations(world.inputs)
