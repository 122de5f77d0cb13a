"""The executions of ``overnight``: their job runs and logs, their progress, and the next start."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from cli.deployed_stack import DeployedStack
from cli.documents import NextNight, NightForecast, NightLine, NightProgress, NightRun, RunProgress
from lake.documents import decode_found, find_document
from lake.engines import engine_of_run
from lake.engines.description import MICRO
from lake.layout import PLAN_AHEAD_EXECUTION, plan_summary_key
from lake.ledger import State
from lake.manifest import Lane
from lake.successors import follow
from lake.texts import format_count, format_size, read_instant
from lake.time import Schedule, iso_utc
from report.collect import execution_costs
from report.figures import cost_figures

RUNNING = "RUNNING"


def list_nights(stack: DeployedStack) -> Iterator[NightLine]:
    """The executions of the last 90 days, newest first, without dry runs, which succeed and are recorded nowhere."""
    pages: Any = stack.sfn.get_paginator("list_executions")
    for page in pages.paginate(stateMachineArn=stack.outputs.overnight):
        for item in sorted(page["executions"], key=lambda found: found["startDate"], reverse=True):
            night = _execution(stack, item)
            if night.manifests is not None or night.status != "SUCCEEDED":
                yield night


def running_execution(stack: DeployedStack) -> str | None:
    found = stack.sfn.list_executions(stateMachineArn=stack.outputs.overnight, statusFilter=RUNNING)
    return next((item["name"] for item in found["executions"]), None)


def find_execution(stack: DeployedStack, name: str) -> NightLine | None:
    """Return the execution of this name or ARN; None if neither Step Functions nor the ledger knows it."""
    short = name.rsplit(":", 1)[-1]
    try:
        return _execution(stack, stack.sfn.describe_execution(executionArn=execution_arn(stack, short)))
    except (stack.sfn.exceptions.ExecutionDoesNotExist, stack.sfn.exceptions.InvalidArn):
        # A text that cannot be a name is not a valid ARN either.
        if not stack.ledger.executions.facts(short):
            return None
    return _execution(stack, {"name": short, "status": "UNKNOWN"})


def execution_arn(stack: DeployedStack, name: str) -> str:
    return f"{stack.outputs.overnight.replace(':stateMachine:', ':execution:')}:{name}"


def _execution(stack: DeployedStack, item: Mapping[str, Any]) -> NightLine:
    recorded = stack.ledger.executions.facts(item["name"])
    return NightLine(
        execution=item["name"],
        status=item["status"],
        outcome=recorded.get("outcome", item["status"]),
        started_at=iso_utc(item["startDate"]) if "startDate" in item else recorded.get("planned_at"),
        ended_at=iso_utc(item["stopDate"]) if "stopDate" in item else recorded.get("settled_at"),
        engine=recorded.get("engine"),
        files=recorded.get("files"),
        bytes=recorded.get("bytes"),
        manifests=recorded.get("manifests"),
        planned_dollars=recorded["micro_dollars"] / MICRO if "micro_dollars" in recorded else None,
        manifests_done=recorded.get("done"),
        rows=recorded.get("rows"),
        quarantined_lines=recorded.get("rejects"),
        unreadable_files=recorded.get("failed_files"),
    )


def log_stream(stack: DeployedStack, job_run: str) -> tuple[str, str]:
    return engine_of_run(job_run).log_stream(stack.name, job_run, stack.outputs.stream_application)


def log_of_run(stack: DeployedStack, job_run: str, lane: str) -> str:
    """Return the command that prints a job run's log, by its id in leases and its lane; logs are kept for a month."""
    return f"hybrid-router logs {lane} --run {job_run} --since 30d{stack.options}"


def local_log(stack: DeployedStack, job_run: str) -> Path:
    """The file of a run's log in the local cloud, of any job: the run's manifest can be in another lane now."""
    resources = stack.resources
    jobs = [resources.batch_job, *map(resources.stream_job_of, stack.outputs.shards.names)]
    paths = [Path(f"{stack.local_logs}/{job}/{job_run.rpartition(':')[2]}.log") for job in jobs]
    return next((path for path in paths if path.exists()), paths[0])


def read_runs(stack: DeployedStack, execution: str) -> list[NightRun]:
    """Return the job runs of an execution, by its name, that have a cost row, in the order of their starts."""
    recorded = {execution: stack.ledger.executions.facts(execution)}
    return [
        NightRun(
            job_run=row.id,
            engine=row.engine,
            started_at=row.started_at,
            ended_at=row.ended_at,
            minutes=round(row.seconds / 60, 1),
            dollars=row.micro_dollars / MICRO,
            log=log_of_run(stack, row.id, row.lane),
            state=row.state,
            reason=stack.runnable(row.reason),
        )
        for row in cost_figures(execution_costs(stack.ledger, recorded)).job_runs
    ]


MAX_NAMED_RUNS = 3


def read_progress(stack: DeployedStack, summary: Mapping[str, Any]) -> NightProgress:
    """Count the manifests of a plan (its document) by their current rows, or by their successors' rows."""
    states: Counter[State] = Counter()
    sizes: Counter[State] = Counter()
    done: Counter[str | None] = Counter()
    running: Counter[str | None] = Counter()
    for page in follow(stack.ledger, summary.get("manifestIds", [])):
        for row in (row for _, row in page if row is not None and row.lane == Lane.BATCH):
            if row.state in (State.DONE, State.FAILED) or row.open:
                states[row.state] += 1
                sizes[row.state] += row.bytes
            if row.state == State.DONE:
                done[row.owner] += 1
            elif row.open and row.state != State.QUEUED:
                running[row.owner] += 1
    return NightProgress(
        manifests=states.total(),
        done=states[State.DONE],
        running=running.total(),
        failed=states[State.FAILED],
        bytes=sizes.total(),
        bytes_done=sizes[State.DONE],
        job_runs=tuple(RunProgress(run or "", done[run], number) for run, number in running.most_common()),
    )


def format_progress(progress: NightProgress) -> str:
    text = (
        f"{progress.done:,} of {format_count(progress.manifests, 'manifest')} done, "
        f"{format_size(progress.bytes_done)} of {format_size(progress.bytes)}"
    )
    if progress.running:
        text += f", {progress.running:,} at work"
    if progress.failed:
        text += f", {progress.failed:,} failed"
    runs = [f"{run.job_run} ({run.done:,} done, {run.running:,} at work)" for run in progress.job_runs[:MAX_NAMED_RUNS]]
    if more := len(progress.job_runs) - len(runs):
        runs.append(format_count(more, "more job run"))
    return f"{text}: {', '.join(runs)}" if runs else text


def read_zone(stack: DeployedStack) -> ZoneInfo:
    return ZoneInfo(_schedule(stack).get("ScheduleExpressionTimezone", "UTC"))


def read_next_night(stack: DeployedStack, now: datetime) -> NextNight:
    """Return the next night at ``now`` (aware), with its newest plan, which ``plan`` makes every hour.

    The forecast is None if there is no plan, or its night has begun or was moved. The start is None if the schedule is
    disabled, or its expression does not decide; then there is no forecast either.
    """
    found = _schedule(stack)
    zone, expression = found.get("ScheduleExpressionTimezone", "UTC"), found["ScheduleExpression"]
    enabled = found.get("State", "ENABLED") == "ENABLED"
    bucket, key = stack.resources.control_bucket, plan_summary_key(PLAN_AHEAD_EXECUTION)
    forecast = planned_night(find_document(stack.s3, bucket, key, "forecast", "plannedAt"), f"s3://{bucket}/{key}")
    start = Schedule.parse(expression).next_start(zone, now) if enabled else None
    if forecast is not None and read_instant(forecast.start) != start:
        forecast = None
    return NextNight(zone, expression, enabled, iso_utc(start) if start else None, forecast)


def _schedule(stack: DeployedStack) -> Mapping[str, Any]:
    found: Mapping[str, Any] = stack.scheduler.get_schedule(Name=stack.outputs.overnight_schedule)
    return found


def planned_night(summary: dict[str, Any] | None, uri: str) -> NightForecast | None:
    """``uri``: the summary's place. Raises ``InvalidDocumentError`` if it is damaged."""
    if summary is None:
        return None
    return decode_found(NightForecast, {**summary["forecast"], **summary, "planned_at": summary["plannedAt"]}, uri)
