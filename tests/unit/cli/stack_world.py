"""A deployed stack for commands that read: S3 and the ledger are emulated, tests set the answers of other services."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from cli.deployed_stack import DeployedStack
from infra.names import OPTIONAL, StackOutputs, camel_case
from lake.layout import plan_summary_key
from lake.settings.model import dump_settings
from router.services import Services
from tests.unit.lake.world import RESOURCES, World

NIGHT = datetime(2026, 11, 19, 21, 0, tzinfo=UTC)
"""22:00 in Berlin, on the evening before the morning of the emulated world."""
MACHINE = "arn:aws:states:eu-central-1:111122223333:stateMachine:hybrid-router-dev-overnight"


EXCEPTIONS = SimpleNamespace(**{name: type(name, (Exception,), {}) for name in ("ExecutionDoesNotExist", "InvalidArn")})
"""Answers of Step Functions for an unknown name, and for a text that cannot be a name."""


@dataclass
class FakeServices:
    """The clients of services that only commands use; their attributes are the answers."""

    executions: list[dict[str, Any]] = field(default_factory=list)
    stream_runs: list[dict[str, Any]] = field(default_factory=list)
    alarms: list[dict[str, Any]] = field(default_factory=list)
    alarm_changes: list[dict[str, Any]] = field(default_factory=list)
    dead_letters: int = 0
    schedule: str = "cron(0 22 * * ? *)"
    exceptions: Any = field(default_factory=lambda: EXCEPTIONS)

    def describe_execution(self, executionArn: str) -> dict[str, Any]:  # noqa: N803
        for item in self.executions:
            if executionArn == f"{MACHINE.replace(':stateMachine:', ':execution:')}:{item['name']}":
                return item
        raise self.exceptions.InvalidArn if " " in executionArn else self.exceptions.ExecutionDoesNotExist

    def list_executions(self, **_request: Any) -> dict[str, Any]:
        return {"executions": [item for item in self.executions if item["status"] == "RUNNING"]}

    def get_execution_history(self, **_request: Any) -> dict[str, Any]:
        return {"events": []}

    def get_job_runs(self, **_request: Any) -> dict[str, Any]:
        return {"JobRuns": self.stream_runs}

    def get_schedule(self, **_request: str) -> dict[str, Any]:
        zone = "Europe/Berlin"
        return {"ScheduleExpression": self.schedule, "ScheduleExpressionTimezone": zone, "State": "ENABLED"}

    def get_queue_attributes(self, **_request: Any) -> dict[str, Any]:
        return {"Attributes": {"ApproximateNumberOfMessages": str(self.dead_letters)}}

    def get_paginator(self, _operation: str) -> "FakeServices":
        return self

    def paginate(self, **request: Any) -> list[dict[str, Any]]:
        """One execution (newest first), one alarm, or one change of an alarm per page."""
        if "stateMachineArn" in request:
            return [{"executions": [execution]} for execution in self.executions]
        if "HistoryItemType" in request:
            changes = (item for item in self.alarm_changes if item["AlarmName"] == request["AlarmName"])
            return [{"AlarmHistoryItems": [item]} for item in changes]
        # An account can have thousands of others.
        assert request["AlarmNamePrefix"] == "hybrid-router-dev-"
        return [{"MetricAlarms": [alarm]} for alarm in self.alarms]


NAMES = [item.name for item in fields(StackOutputs) if item.name not in ("resources", *OPTIONAL)]
OUTPUTS = {**{camel_case(name): name for name in NAMES}, "Overnight": MACHINE}


class FakeLambda:
    """Lambda, which returns the responses in order and repeats the last one; and Step Functions."""

    def __init__(self, *bodies: dict[str, Any], error: bool = False) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.started: list[dict[str, Any]] = []
        self._bodies, self._error = list(bodies), error

    def invoke(self, FunctionName: str, Payload: str) -> dict[str, Any]:  # noqa: N803
        self.requests.append((FunctionName, json.loads(Payload)))
        body = self._bodies.pop(0) if len(self._bodies) > 1 else self._bodies[0]
        response: dict[str, Any] = {"Payload": io.BytesIO(json.dumps(body).encode())}
        return {**response, "FunctionError": "Unhandled"} if self._error else response

    def start_execution(self, stateMachineArn: str, name: str, input: str) -> dict[str, str]:  # noqa: A002, N803
        self.started.append(json.loads(input))
        return {"executionArn": f"{stateMachineArn}:1"}


def stack_with(functions: FakeLambda) -> DeployedStack:
    resources = {camel_case(name.removeprefix("--")): value for name, value in RESOURCES.to_arguments().items()}
    unused: Any = None
    outputs = StackOutputs.from_outputs({**OUTPUTS, **resources})
    return DeployedStack(outputs, unused, unused, functions, unused, functions, unused)


def stack_of(world: World, services: FakeServices, records: Mapping[str, str] | None = None) -> DeployedStack:
    """The stack whose buckets and ledger are the world's; ``records``: name -> dataset of each ``[[records]]``."""
    resources = {camel_case(name.removeprefix("--")): value for name, value in world.resources.to_arguments().items()}
    names = {**OUTPUTS, "BatchJob": "hybrid-router-dev-batch"}
    fake: Any = services
    outputs = StackOutputs.from_outputs({**resources, **names, **({"Records": json.dumps(records)} if records else {})})
    clients = {"cloudwatch": fake, "scheduler": fake, "stream_client": fake}
    return DeployedStack(outputs, world.raw_s3, world.ledger, fake, fake, fake, fake, **clients)


def with_settings(stack: DeployedStack, services: Services) -> DeployedStack:
    """The stack as deployed with these settings, and with the Glue of these services."""
    glue: Any = services.glue
    services.s3.put_object(Bucket="control", Key="settings.json", Body=dump_settings(services.settings).encode())
    glue.jobs[stack.resources.batch_job] = {"DefaultArguments": {"--settings": "s3://control/settings.json"}}
    tables = "tables" if services.settings.has_tables else ""
    return replace(stack, outputs=replace(stack.outputs, tables=tables), s3=services.s3, glue=glue)


def execution(name: str, status: str = "SUCCEEDED", started: datetime = NIGHT, minutes: int = 70) -> dict[str, Any]:
    ended = {} if status == "RUNNING" else {"stopDate": started.replace(hour=22, minute=minutes - 60)}
    return {"name": name, "status": status, "startDate": started, **ended}


FORECAST = {
    "minutes": 70.0,
    "minutes_low": 40.0,
    "minutes_high": 90.0,
    "dollars": 12.5,
    "dollars_low": 7.5,
    "dollars_high": 16.0,
    "start": "2026-11-20T21:00:00.000+00:00",
    "end": "2026-11-20T22:10:00.000+00:00",
    "deadline": "2026-11-21T05:00:00.000+00:00",
    "fits": True,
    "late_minutes": 0.0,
    "options": [],
}
PLAN = {
    "engine": "glue-flex",
    "workers": 10,
    "runs": 4,
    "manifests": 2,
    "files": 10,
    "bytes": 4_500_000_000,
    "maxConcurrency": 4,
    "forecast": FORECAST,
}
"""Common members of summaries and answers of ``plan``."""


def put_summary(world: World, name: str, manifests: Sequence[str] = ()) -> None:
    """Write the summary of a plan of these manifests, as the function ``plan`` does."""
    summary = {**PLAN, "plannedAt": "2026-11-20T09:00:00.000+00:00", "manifestIds": list(manifests)}
    world.raw_s3.put_object(Bucket="control", Key=plan_summary_key(name), Body=json.dumps(summary).encode())
