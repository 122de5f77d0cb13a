"""The executions of ``overnight``: their job runs and logs, how far one is, and when the next one begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from cli.deployed_stack import DeployedStack
from cli.documents import NightActual, NightProgress, NightRun, PlannedNight, RunProgress
from lake.bills import MICRO
from lake.documents import find_document
from lake.engines import engine_of_run
from lake.layout import PLAN_AHEAD_EXECUTION, plan_summary_key
from lake.ledger import State
from lake.manifest import Lane
from lake.successors import follow
from lake.texts import format_count, format_size, read_instant
from lake.time import Schedule

PAGE = 100
RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution. Step Functions forgets it after 90 days; the ledger does not."""

    name: str
    status: str
    """The status that Step Functions reports; UNKNOWN: it has forgotten the execution."""
    started_at: datetime | None
    ended_at: datetime | None
    plan: dict[str, Any] | None
    """What the ledger has of its plan; None: it was not planned, or only as a dry run."""
    verdict: dict[str, Any] | None

    @property
    def outcome(self) -> str:
        """The verdict of settle; without one the status."""
        return str((self.verdict or {}).get("outcome") or self.status)

    @property
    def is_night(self) -> bool:
        """Whether it was to convert something: a dry run is recorded nowhere and succeeds."""
        return self.plan is not None or self.status != "SUCCEEDED"


def list_executions(stack: DeployedStack) -> Iterator[Execution]:
    """The executions of the last 90 days, newest first, page by page."""
    token: dict[str, str] = {}
    while True:
        page = stack.sfn.list_executions(stateMachineArn=stack.outputs.overnight, maxResults=PAGE, **token)
        for item in sorted(page["executions"], key=lambda found: found["startDate"], reverse=True):
            yield _execution(stack, item)
        if not page.get("nextToken"):
            return
        token = {"nextToken": page["nextToken"]}


def find_execution(stack: DeployedStack, name: str) -> Execution | None:
    """The execution of this name or ARN; None: neither Step Functions nor the ledger knows it."""
    short = name.rsplit(":", 1)[-1]
    try:
        return _execution(stack, stack.sfn.describe_execution(executionArn=execution_arn(stack, short)))
    except (stack.sfn.exceptions.ExecutionDoesNotExist, stack.sfn.exceptions.InvalidArn):
        # A text that cannot be a name is not a valid ARN either.
        row = stack.ledger.executions.get(short)
    if row is None:
        return None
    plan, verdict = row.get("plan"), row.get("verdict")
    return Execution(short, "UNKNOWN", _instant(plan, "planned_at"), _instant(verdict, "settled_at"), plan, verdict)


def execution_arn(stack: DeployedStack, name: str) -> str:
    return f"{stack.outputs.overnight.replace(':stateMachine:', ':execution:')}:{name}"


def _execution(stack: DeployedStack, item: dict[str, Any]) -> Execution:
    row = stack.ledger.executions.get(item["name"]) or {}
    ended = item.get("stopDate")
    return Execution(
        item["name"],
        item["status"],
        item["startDate"].astimezone(UTC),
        ended.astimezone(UTC) if ended else None,
        row.get("plan"),
        row.get("verdict"),
    )


def _instant(part: dict[str, Any] | None, name: str) -> datetime | None:
    return read_instant(part[name]) if part and name in part else None


KEPT = "30d"
"""The log groups keep events for a month."""


def log_stream(stack: DeployedStack, job_run: str) -> tuple[str, str]:
    """Log group and log stream of what the driver of a job run prints."""
    return engine_of_run(job_run).log_stream(stack.name, job_run, stack.outputs.stream_application)


def log_of_run(stack: DeployedStack, job_run: str, lane: str) -> str | None:
    """The command that prints the log of a job run.

    ``job_run`` is the id by which it holds its leases, ``lane`` that of its manifests. None: a person has started it,
    and its output is where that person has it.
    """
    if job_run.startswith("manual-"):
        return None
    return f"hybrid-router logs {lane} --run {job_run} --since {KEPT}{stack.options}"


def local_log(stack: DeployedStack, job_run: str, lane: str) -> Path:
    """The file in which the local cloud keeps the log of a job run: a run of any shard can have taken a manifest."""
    resources, shards = stack.resources, stack.outputs.shards.names
    jobs = list(map(resources.stream_job_of, shards)) if lane == Lane.STREAM else [resources.batch_job]
    paths = [Path(f"{stack.local_logs}/{job}/{job_run.rpartition(':')[2]}.log") for job in jobs]
    return next((path for path in paths if path.exists()), paths[0])


MAX_DAYS = 15
"""An execution takes at most 14 days (``overnight.asl.json``), and its last job run may end on the day after."""


def read_runs(stack: DeployedStack, execution: Execution) -> list[NightRun]:
    """The job runs of an execution that have a cost row, in the order in which they began.

    Cost rows are kept by the day on which the job run has ended: those of the days of the execution are read.
    """
    if execution.started_at is None:
        return []
    first = execution.started_at.astimezone(UTC).date()
    last = (execution.ended_at or datetime.now(UTC)).astimezone(UTC).date() + timedelta(days=1)
    rows = stack.ledger.costs.of_days(first, min(last, first + timedelta(days=MAX_DAYS)))
    found = sorted((row for row in rows if row.execution == execution.name), key=lambda row: row.started_at)
    return [
        NightRun(
            job_run=row.id,
            engine=row.engine,
            started_at=row.started_at,
            ended_at=row.ended_at,
            minutes=round(row.seconds / 60, 1),
            dollars=row.micro_dollars / MICRO,
            datasets=tuple(sorted(share.dataset for share in row.shares if share.dataset)),
            log=log_of_run(stack, row.id, row.lane),
            state=row.state,
            reason=row.reason,
        )
        for row in found
    ]


def actual_of(runs: Sequence[NightRun], verdict: Mapping[str, Any]) -> NightActual:
    """The counts of the verdict document, which may be empty, with dollars and time of the job runs."""
    dollars = minutes = None
    if runs:
        begun = min(read_instant(run.started_at) for run in runs)
        ended = max(read_instant(run.ended_at) for run in runs)
        dollars, minutes = round(sum(run.dollars for run in runs), 6), round((ended - begun).total_seconds() / 60, 1)
    failed, opened, damaged = (verdict.get(name) for name in ("failed", "open", "damagedObjects"))
    return NightActual(failed, opened, damaged, len(runs), dollars, minutes)


MAX_NAMED_RUNS = 3
"""Job runs that one line names, those with the most manifests at work."""


def read_progress(stack: DeployedStack, summary: Mapping[str, Any]) -> NightProgress:
    """Count the manifests of a plan by their current rows; a superseded one is replaced by its successors.

    ``summary`` is the document of the plan.
    """
    states: Counter[State] = Counter()
    done: Counter[str] = Counter()
    running: Counter[str] = Counter()
    size = size_done = 0
    for page in follow(stack.ledger, summary.get("manifestIds", [])):
        for row in (row for _, row in page if row is not None and row.lane == Lane.BATCH):
            if row.state not in (State.DONE, State.FAILED) and not row.open:
                continue
            states[row.state] += 1
            size += row.bytes
            if row.state == State.DONE:
                size_done += row.bytes
                done[row.owner or ""] += 1
            elif row.open and row.state != State.QUEUED:
                running[row.owner or ""] += 1
    runs = (RunProgress(run, done[run], manifests) for run, manifests in running.most_common())
    at_work = running.total()
    return NightProgress(
        states.total(), states[State.DONE], at_work, states[State.FAILED], size, size_done, tuple(runs)
    )


def format_progress(progress: NightProgress) -> str:
    """One line: what is done, at work and failed, and which job runs are at work."""
    parts = [
        f"{progress.done:,} of {format_count(progress.manifests, 'manifest')} done, "
        f"{format_size(progress.bytes_done)} of {format_size(progress.bytes)}"
    ]
    if progress.running:
        parts.append(f"{progress.running:,} at work")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    runs = [f"{run.job_run} ({run.done:,} done, {run.running:,} at work)" for run in progress.job_runs[:MAX_NAMED_RUNS]]
    more = len(progress.job_runs) - len(runs)
    if more > 0:
        runs.append(format_count(more, "more job run"))
    return ", ".join(parts) + (f": {', '.join(runs)}" if runs else "")


@dataclass(frozen=True, slots=True)
class NightSchedule:
    """The schedule that starts ``overnight``."""

    expression: str
    time_zone: str
    enabled: bool

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def next_start(self, now: datetime) -> datetime | None:
        """The next start after ``now`` (aware); None if it is disabled, or if the expression does not decide."""
        return Schedule.parse(self.expression).next_start(self.time_zone, now) if self.enabled else None


def read_schedule(stack: DeployedStack) -> NightSchedule:
    """The schedule as it is deployed."""
    found = stack.scheduler.get_schedule(Name=stack.outputs.overnight_schedule)
    zone = found.get("ScheduleExpressionTimezone", "UTC")
    return NightSchedule(found["ScheduleExpression"], zone, found.get("State", "ENABLED") == "ENABLED")


def read_forecast(stack: DeployedStack, now: datetime) -> dict[str, Any] | None:
    """The newest plan for the next night, which the function ``plan`` makes every hour; None: there is none, or the
    night that it was made for has begun before ``now`` (aware).
    """
    summary: dict[str, Any] | None = find_document(
        stack.s3, stack.resources.control_bucket, plan_summary_key(PLAN_AHEAD_EXECUTION), "forecast"
    )
    return summary if summary is not None and read_instant(summary["forecast"]["start"]) > now else None


def planned_night(summary: dict[str, Any] | None) -> PlannedNight | None:
    """A plan's summary with its forecast; None: there is no plan."""
    if summary is None:
        return None
    forecast = summary["forecast"]
    return PlannedNight(
        planned_at=summary["plannedAt"],
        **{name: summary[name] for name in ("engine", "workers", "runs", "manifests", "files", "bytes")},
        **{name: forecast[name] for name in ("start", "end", "deadline", "fits", "late_minutes")},
        **{
            f"{name}{end}": forecast[f"{name}{end}"] for name in ("minutes", "dollars") for end in ("", "_low", "_high")
        },
    )
