"""What asks whether the streaming job runs: a start that Glue refuses, because a run of it exists."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lake.job_runs import live_glue_runs
from lake.manifest import Lane
from tests.e2e.removals.function_plays import answer, event, routed, routed_without
from tests.e2e.removals.sweep_plays import swept
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.removals.stage import Stage


def an_urgent_file(stage: Stage) -> str:
    with _a_live_stream(stage):
        return routed_without(stage, event(stage.new_file("urgent")))


def a_promotion(stage: Stage) -> str:
    file = routed(stage)
    with _a_live_stream(stage):
        return answer(stage, "promote", {"files": [file.uri]})


def a_sweep(stage: Stage) -> str:
    row = stage.manifest(lane=Lane.STREAM)
    stage.age(row)
    with _a_live_stream(stage):
        return swept(stage)


@contextmanager
def _a_live_stream(stage: Stage) -> Iterator[None]:
    """A run of the streaming job that has not sent a heartbeat."""
    _kill_the_stream(stage)
    stage.scenario.deployment.glue.start_job_run(JobName=stage.scenario.deployment.resources.stream_job)
    stage.scenario.deployment.ledger.stream.end()
    try:
        yield
    finally:
        _kill_the_stream(stage)


def _kill_the_stream(stage: Stage) -> None:
    glue, job = stage.scenario.deployment.glue, stage.scenario.deployment.resources.stream_job
    stage.invoke("stream_control", {"action": "kill"})

    def has_ended() -> bool:
        return not live_glue_runs(glue, job, 20)

    wait_for("the end of the streaming job", has_ended)
