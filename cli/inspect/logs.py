"""``hybrid-router logs``: what a function, a job or Firehose has logged, and which executions have failed."""

import heapq
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.commands import Json
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.executions import local_log, log_stream, read_zone
from infra.names import delivery_stream
from lake.documents import format_json
from lake.engines import ENGINES
from lake.errors import InvalidInputError
from lake.manifest import Lane
from lake.texts import format_duration, printable, read_instant
from lake.time import iso_utc

SINCE = re.compile(r"([1-9]\d{0,4})([mhd])")
UNITS = {"m": "minutes", "h": "hours", "d": "days"}
FUNCTION_LOGS = re.compile(r"Router([a-z]+)Logs[0-9A-F]{8}")
"""Logical id of a function's log group; it lacks the underscores of the function's name."""
UNSUCCESSFUL = ("FAILED", "TIMED_OUT", "ABORTED")
NOT_SHOWN = frozenset(
    ("level", "location", "message", "timestamp", "service", "cold_start", "xray_trace_id", "exception_name")
)


@dataclass(frozen=True, slots=True)
class LogEvent:
    at: str
    text: str


def logs_command(
    stack: DeployedStack,
    name: Annotated[
        str, typer.Argument(help="A function, such as sweep; batch or stream; records; or executions that failed.")
    ],
    since: Annotated[str, typer.Option(help="How far back: 30m, 3h or 2d.")] = "3h",
    contains: Annotated[str | None, typer.Option(help="Only events with this text, such as ERROR or ALARM.")] = None,
    run: Annotated[str | None, typer.Option(help="Only this job run, as night and explain name it.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of events, the last ones.")] = 100,
    *,
    as_json: Json = False,
) -> int:
    """Print what a function, the jobs or Firehose have logged, or which executions have failed, and why."""
    beginning, name = datetime.now(UTC) - parse_since(since), name.replace("_", "")
    if run is not None and name not in list(Lane):
        raise InvalidInputError(f"--run {run}: only the logs {' and '.join(Lane)} are of job runs")
    sources = _sources(stack, beginning, contains) if run is None else {name: _of_run(stack, beginning, run, contains)}
    if name not in sources:
        raise InvalidInputError(f"the stack has no log {name!r}: it has {', '.join(sorted(sources))}")
    found = (event for event in sources[name] if contains is None or contains in event.text)
    if as_json:
        typer.echo(format_json({"log": name, "events": list(deque(found, maxlen=limit))}))
        return ExitCode.OK
    shown = deque(((event.at, text) for event in found if (text := format_event(event.text))), maxlen=limit)
    zone = read_zone(stack)
    typer.echo(f"{stack.name}, {name}, times in {zone.key}", err=True)
    if not shown:
        typer.echo(f"nothing in the last {since}: pass a longer --since", err=True)
    for at, text in shown:
        typer.echo(f"{read_instant(at).astimezone(zone):%Y-%m-%d %H:%M:%S}  {printable(text)}")
    return ExitCode.OK


def parse_since(text: str) -> timedelta:
    found = SINCE.fullmatch(text)
    if not found:
        raise InvalidInputError(f"--since {text!r} is not valid: pass minutes, hours or days, such as 30m, 3h or 2d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def _sources(stack: DeployedStack, beginning: datetime, contains: str | None) -> dict[str, Iterator[LogEvent]]:
    """Every log of the stack by its name, with the events that contain a text; a log is read when it is iterated."""
    pages = stack.open_client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack.name)
    resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
    found: dict[str, Iterator[LogEvent]] = {}
    groups = partial(_groups, stack, beginning, contains)
    for resource in resources:
        logical = FUNCTION_LOGS.fullmatch(resource["LogicalResourceId"])
        if logical and resource["ResourceType"] == "AWS::Logs::LogGroup":
            found[logical[1]] = groups([resource["PhysicalResourceId"]])
    machines = [
        item["PhysicalResourceId"] for item in resources if item["ResourceType"] == "AWS::StepFunctions::StateMachine"
    ]
    found["executions"] = _failed_executions(stack, machines, beginning)
    for name, jobs in (
        ("batch", [stack.resources.batch_job]),
        ("stream", list(map(stack.resources.stream_job_of, stack.outputs.shards.names))),
    ):
        if stack.local:
            folders = [Path(f"{stack.local_logs}/{job}") for job in jobs] if stack.local_logs else []
            found[name] = _local_files([path for folder in folders for path in folder.glob("*.log")], beginning)
        else:
            found[name] = groups(_job_groups(stack, name))
    if stack.outputs.records:
        found["records"] = groups(
            [f"/aws/kinesisfirehose/{delivery_stream(stack.name, name)}" for name in stack.outputs.records]
        )
    return found


def _of_run(stack: DeployedStack, beginning: datetime, run: str, contains: str | None) -> Iterator[LogEvent]:
    if stack.local:
        path = local_log(stack, run)
        return _local_files([path] if path.exists() else [], beginning)
    group, stream = log_stream(stack, run)
    return _groups(stack, beginning, contains, [group], logStreamNames=[stream])


def _job_groups(stack: DeployedStack, job: str) -> list[str]:
    application = stack.outputs.stream_application
    engines, place = (
        ([ENGINES[stack.outputs.stream_engine]], application) if job == "stream" else (list(ENGINES.values()), "batch")
    )
    return sorted({engine.log_stream(stack.name, f"{engine.run_prefix}{place}:", application)[0] for engine in engines})


def _groups(
    stack: DeployedStack, beginning: datetime, contains: str | None, groups: list[str], **request: object
) -> Iterator[LogEvent]:
    """Yield events of log groups of CloudWatch, which filters by the text; a missing group has none."""
    if contains is not None:
        request["filterPattern"] = json.dumps(contains, ensure_ascii=False)
    client = stack.open_client("logs")
    pages, start = client.get_paginator("filter_log_events"), max(int(beginning.timestamp() * 1000), 0)

    def events(group: str) -> Iterator[LogEvent]:
        with suppress(client.exceptions.ResourceNotFoundException):
            for page in pages.paginate(logGroupName=group, startTime=start, **request):
                for event in page["events"]:
                    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
                    yield LogEvent(iso_utc(at), event["message"].rstrip("\n"))

    yield from heapq.merge(*map(events, groups), key=lambda event: event.at)


def _local_files(paths: list[Path], beginning: datetime) -> Iterator[LogEvent]:
    """Yield lines of the files that the local cloud writes for job runs; each line has the time of its file."""
    for seconds, path in sorted((path.stat().st_mtime, path) for path in paths):
        at = datetime.fromtimestamp(seconds, UTC)
        if at >= beginning:
            with path.open(encoding="utf-8", errors="replace") as lines:
                yield from (LogEvent(iso_utc(at), line.rstrip("\n")) for line in lines)


def _failed_executions(stack: DeployedStack, machines: list[str], beginning: datetime) -> Iterator[LogEvent]:
    """Yield the failed executions of all state machines, with error and cause, oldest first."""
    found = []
    for machine in machines:
        for status in UNSUCCESSFUL:
            pages = stack.sfn.get_paginator("list_executions").paginate(stateMachineArn=machine, statusFilter=status)
            ended = (item for page in pages for item in page["executions"])
            found += [item for item in ended if item["stopDate"].astimezone(UTC) >= beginning]
    for item in sorted(found, key=lambda item: item["stopDate"]):
        execution = stack.sfn.describe_execution(executionArn=item["executionArn"])
        took = format_duration((item["stopDate"] - item["startDate"]).total_seconds())
        machine = item["stateMachineArn"].rsplit(":", 1)[-1].removeprefix(f"{stack.name}-")
        reason = ": ".join(text for text in (execution.get("error"), execution.get("cause")) if text)
        text = f"{machine} {item['name']}: {item['status']} after {took}"
        yield LogEvent(iso_utc(item["stopDate"].astimezone(UTC)), f"{text}: {reason}" if reason else text)


def format_event(text: str) -> str:
    """Format an event for a person: from a function's JSON, the message with its fields; empty for metrics, and for
    start and end of an invocation.
    """
    if text.startswith(("START RequestId", "END RequestId")):
        return ""
    try:
        event: Mapping[str, Any] = json.loads(text)
    except ValueError:
        return text
    if isinstance(event, dict) and "_aws" in event:
        return ""
    if not isinstance(event, dict) or "message" not in event:
        return text
    shown = {name: value for name, value in event.items() if not (name in NOT_SHOWN or name.startswith("function_"))}
    if "exception" in shown:
        shown["exception"] = str(shown["exception"]).rstrip().rsplit("\n", 1)[-1]
    details = ", ".join(f"{name} {value}" for name, value in shown.items() if name != "stack_trace")
    return f"{event.get('level', ''):<8}{event['message']}{f' ({details})' if details else ''}"
