"""The properties of the emulator that product and patches rely on: a version that differs fails here."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.e2e.waiting import wait_for


def test_limits_of_a_job_come_through_cloudformation(probe):
    jobs = {name: probe.client("glue").get_job(JobName=name)["Job"] for name in ("probe-batch", "probe-stream")}
    assert jobs["probe-batch"]["ExecutionProperty"] == {"MaxConcurrentRuns": 2}
    assert jobs["probe-batch"]["Timeout"] == 240
    assert jobs["probe-stream"]["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    assert "Timeout" not in jobs["probe-stream"]


def test_schedule_fires_at_the_local_time_of_its_zone(probe):
    # Given the deployed cron schedule, with its zone
    scheduler, states = probe.client("scheduler"), probe.client("stepfunctions")
    schedule = scheduler.get_schedule(Name="nightly")
    assert schedule["ScheduleExpressionTimezone"] == "Europe/Berlin"
    # When it is moved to a few seconds from now, in local time
    soon = (datetime.now(UTC) + timedelta(seconds=2)).astimezone(ZoneInfo("Europe/Berlin"))
    key = probe.put_json("items/scheduled.json", [])
    target = {
        **schedule["Target"],
        "Input": json.dumps({"bucket": probe.outputs["Bucket"], "key": key, "by": "schedule"}),
    }
    scheduler.update_schedule(
        Name="nightly",
        ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
        ScheduleExpressionTimezone="Europe/Berlin",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )

    # Then the machine has run with the schedule's input
    def started():
        executions = states.list_executions(stateMachineArn=probe.outputs["Overnight"])["executions"]
        described = (states.describe_execution(executionArn=entry["executionArn"]) for entry in executions)
        return [each for each in described if json.loads(each["input"]).get("by") == "schedule"]

    assert len(wait_for("the scheduled execution", started)) == 1
