"""`hybrid-router logs`: the time window, and which part of a function's event is shown."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from cli.inspect.logs import format_event, logs_command, parse_since
from lake.errors import InvalidInputError
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import World

CLOUDFORMATION: Any = SimpleNamespace(
    get_paginator=lambda _name: SimpleNamespace(paginate=lambda **_request: [{"StackResourceSummaries": []}])
)
"""A stack without resources."""


def test_minutes_hours_and_days_are_understood() -> None:
    assert [parse_since(text) for text in ("30m", "3h", "2d")] == [
        timedelta(minutes=30),
        timedelta(hours=3),
        timedelta(days=2),
    ]
    for wrong in ("0h", "3", "yesterday", "-1d"):
        with pytest.raises(InvalidInputError, match="pass minutes, hours or days"):
            parse_since(wrong)


def test_an_event_is_its_message_with_the_fields_that_say_something() -> None:
    event = {
        "level": "ERROR",
        "location": "sweep:1",
        "message": "not repaired",
        "service": "sweep",
        "function_arn": "arn:aws:lambda:here",
        "manifest": "m1",
        "exception": "Traceback (most recent call last):\n  File ...\nValueError: why\n",
    }
    assert format_event(json.dumps(event)) == "ERROR   not repaired (manifest m1, exception ValueError: why)"
    assert format_event(json.dumps({"_aws": {}, "SweepStalled": 1})) == ""
    assert format_event("START RequestId: 1 Version: $LATEST") == ""
    assert format_event("2026-11-20T08:00:00Z ALARM a line of a job") == "2026-11-20T08:00:00Z ALARM a line of a job"


def test_a_log_is_searched_by_its_service_and_of_one_job_run_alone(world: World, answered: Answered) -> None:
    # Given
    logs = boto3.client("logs", region_name="eu-central-1")
    group = "/aws-glue/hybrid-router-dev/output"
    logs.create_log_group(logGroupName=group)
    now = int(datetime.now(UTC).timestamp() * 1000)
    for run in ("jr_1", "jr_2"):
        logs.create_log_stream(logGroupName=group, logStreamName=run)
        events = [{"timestamp": now, "message": f"{text} of {run}"} for text in ("ALARM denied", "fine")]
        logs.put_log_events(logGroupName=group, logStreamName=run, logEvents=events)
    requests: list[dict[str, Any]] = []
    logs.meta.events.register("provide-client-params.*.FilterLogEvents", lambda params, **_: requests.append(params))
    stack = replace(stack_of(world, FakeServices()), open_client=lambda _service: logs)
    # When
    (event,) = answered(logs_command, stack, "batch", "99999d", "ALARM denied", "jr_2")["events"]
    # Then
    assert event["text"] == "ALARM denied of jr_2"
    assert [(item["filterPattern"], item["logStreamNames"]) for item in requests] == [('"ALARM denied"', ["jr_2"])]
    # And a function has no job runs
    with pytest.raises(InvalidInputError, match="only the logs stream and batch are of job runs"):
        logs_command(stack, "sweep", run="jr_2")


def test_the_last_events_of_several_log_groups_are_the_last_of_all(
    world: World, answered: Answered, printed: Printed
) -> None:
    # Given job runs of two engines
    logs, now = boto3.client("logs", region_name="eu-central-1"), int(datetime.now(UTC).timestamp() * 1000)
    for number, group in enumerate(("/aws-glue/hybrid-router-dev/output", "/aws/emr-serverless/hybrid-router-dev")):
        logs.create_log_group(logGroupName=group)
        logs.create_log_stream(logGroupName=group, logStreamName="s")
        events = [{"timestamp": now - 1000 * (2 * age + number), "message": f"{group} {age}"} for age in (1, 0)]
        logs.put_log_events(logGroupName=group, logStreamName="s", logEvents=events)
    # And an event that is not shown
    ended = {"timestamp": now, "message": "END RequestId: 1"}
    logs.put_log_events(logGroupName=group, logStreamName="s", logEvents=[ended])
    stack = replace(
        stack_of(world, FakeServices()), open_client=lambda name: logs if name == "logs" else CLOUDFORMATION
    )
    # When, Then
    found = [event["text"] for event in answered(logs_command, stack, "batch", limit=3)["events"]]
    last = ["/aws/emr-serverless/hybrid-router-dev 0", "/aws-glue/hybrid-router-dev/output 0"]
    assert sorted(found) == sorted([*last, "END RequestId: 1"])
    shown = printed(logs_command, stack, "batch", limit=2).splitlines()
    assert [line.partition("  ")[2] for line in shown] == last
