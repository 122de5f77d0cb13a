"""What makes state machines and schedules use their permissions; the cause of the execution tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.removals.function_plays import find
from tests.e2e.removals.stage import Stage
from tests.e2e.schedules import changed_schedule


def cause_of(stage: Stage, machine: str, request: dict[str, Any]) -> str:
    with stage.lacking():
        execution = stage.scenario.execute(machine, request)
    return str(execution.get("cause"))


def _unnotified(stage: Stage, machine: str, request: dict[str, Any]) -> str:
    """Its cause is what it had to notify people of; the alarm of failed executions reaches them."""
    with stage.lacking():
        execution = stage.scenario.execute(machine, request)
    assert execution["status"] == "FAILED"
    return stage.wait_until_logged("emulator.log")


def a_night(stage: Stage) -> str:
    row = stage.manifest()
    return cause_of(stage, stage.scenario.deployment.outputs.overnight, {"dataset": row.partition.dataset})


def a_night_that_fails(stage: Stage) -> str:
    """Not because of its input, which is not notified."""
    with Stage(stage.scenario, "RouterplanRole", "dynamodb:Query").lacking():
        return _unnotified(stage, stage.scenario.deployment.outputs.overnight, {})


def a_requested_backfill(stage: Stage) -> str:
    request = find(stage.put_silently())["request"]
    return cause_of(stage, stage.scenario.deployment.outputs.backfill, request)


def a_backfill_that_fails(stage: Stage) -> str:
    request = {"dataset": "nowhere", "from": "2026-11-01", "to": "2026-11-02"}
    with Stage(stage.scenario, "RouterbackfillRole", "dynamodb:Query").lacking():
        return _unnotified(stage, stage.scenario.deployment.outputs.backfill, request)


def a_window_that_fails(stage: Stage) -> str:
    function = Stage(stage.scenario, "RouterstreamcontrolRole", "dynamodb:UpdateItem")
    with function.lacking():
        return _unnotified(stage, stage.scenario.deployment.outputs.stream_window, {})


def a_window(stage: Stage) -> str:
    return cause_of(stage, stage.scenario.deployment.outputs.stream_window, {})


def a_verification(stage: Stage) -> str:
    machine = stage.scenario.deployment.outputs.overnight.removesuffix("overnight") + "verify"
    return cause_of(stage, machine, {"date": f"{datetime.now(UTC):%Y-%m-%d}"})


def a_verification_that_fails(stage: Stage) -> str:
    machine = stage.scenario.deployment.outputs.overnight.removesuffix("overnight") + "verify"
    return _unnotified(stage, machine, {"date": "yesterday"})


def the_time_has_come(stage: Stage, kind: str) -> str:
    """A schedule is a service: on AWS its dead letters tell of it, and CloudTrail names the permission."""
    soon = datetime.now(UTC) + timedelta(seconds=1)
    now = {"ScheduleExpression": f"at({soon:%Y-%m-%dT%H:%M:%S})", "ScheduleExpressionTimezone": "UTC"}

    def starts_one(schedule: dict[str, Any]) -> bool:
        return f":{kind}:" in schedule["Target"]["Arn"]

    with stage.lacking(), changed_schedule(stage.scenario, starts_one, **now, State="ENABLED"):
        return stage.wait_until_logged("emulator.log")


def the_time_of_a_machine(stage: Stage) -> str:
    return the_time_has_come(stage, "states")


def the_time_of_a_function(stage: Stage) -> str:
    return the_time_has_come(stage, "lambda")
