"""``doctor --canary``: each job of a deployed stack starts once, tries what a conversion needs, and leaves nothing."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

import typer

from cli.catalog.column_types import PARTITION_COLUMNS, Dialect, quoted
from cli.change.stream import live_runs
from cli.commands import Answer
from cli.deployed_stack import DeployedStack
from cli.doctor.checks import Finding, Readiness, answer_of, finding_of
from cli.errors import NotFoundError
from cli.inspect.executions import local_log, log_of_run, log_stream
from cli.terminal import ended_by_signal, working
from lake.canary import BODY, CANARY_ARGUMENT, CanaryRequest
from lake.documents import find_document
from lake.engines import ENGINES, Engine, EngineDescription, emr_serverless
from lake.engines.description import SUCCEEDED, Bill
from lake.engines.emr_serverless import BATCH_LAUNCH, STREAM_LAUNCH, EmrLaunch
from lake.errors import HybridRouterError, TerminalError
from lake.layout import CANARY, canary_key, canary_report_key
from lake.manifest import Lane
from lake.publish import abort_upload
from lake.settings import Settings
from lake.shards import FIRST_SHARD
from lake.texts import format_count, format_dollars

TIMEOUT_MINUTES = 5
"""After this time the engine ends a run, even if nobody watches it; the minimum of EMR Serverless."""
START_MINUTES = 8
"""Time for a start, after the longest wait for spare capacity."""
MAX_DURATION = timedelta(hours=1)
"""Maximum duration of a canary: the longest wait for workers, the run, and a search for the line of each job."""
NAME_TIME = "%Y%m%dT%H%M%S"
WORKERS_OF_RUN = 2
ARGUMENT = f"--{CANARY_ARGUMENT}"
SCALING = "".join(
    f" --conf spark.{name}=1"
    for name in ("dynamicAllocation.maxExecutors", "dynamicAllocation.initialExecutors", "executor.instances")
)
OF_STREAMS = ("mode", "retryPolicy")
"""Members that only the request of a streaming run has."""


@dataclass(frozen=True, slots=True)
class CanaryJob:
    stack: DeployedStack
    name: str
    lane: Lane
    job: str
    engine: EngineDescription
    worker_type: str
    client: Any
    dollars_per_minute: float

    def alive(self) -> str | None:
        if self.lane != Lane.STREAM:
            return None
        shards = self.stack.outputs.shards.names
        return next((run for shard in shards for run in live_runs(self.stack, shard)), None)

    def start(self, request: CanaryRequest) -> str:
        """Start the smallest possible run, and return the id by which it would hold leases."""
        return _start_on_glue(self, request) if self.engine.service == "glue" else _start_on_emr(self, request)

    def bill(self, run: str) -> Bill | None:
        return self.engine.bill(self.client, self.job, run)

    def stop(self, run: str) -> None:
        self.engine.end_run(self.client, self.job, run)


def _start_on_glue(job: CanaryJob, request: CanaryRequest) -> str:
    flex = job.engine.name is Engine.GLUE_FLEX
    execution = {} if job.lane == Lane.STREAM else {"ExecutionClass": "FLEX" if flex else "STANDARD"}
    answer = job.client.start_job_run(
        JobName=job.job,
        WorkerType=job.worker_type,
        NumberOfWorkers=WORKERS_OF_RUN,
        Timeout=TIMEOUT_MINUTES,
        Arguments={ARGUMENT: request.to_text()},
        **execution,
    )
    return str(answer["JobRunId"])


def _start_on_emr(job: CanaryJob, request: CanaryRequest) -> str:
    outputs, stream = job.stack.outputs, job.lane == Lane.STREAM
    function, variable = (outputs.stream_control, STREAM_LAUNCH) if stream else (outputs.plan, BATCH_LAUNCH)
    found = job.stack.functions.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    launch = replace(EmrLaunch.from_text(found.get(variable, "")), timeout_minutes=TIMEOUT_MINUTES)
    body = launch.request(FIRST_SHARD, job.job, secrets.token_hex(16))
    body["jobDriver"]["sparkSubmit"]["entryPointArguments"] += [ARGUMENT, request.to_text()]
    if not stream:
        body["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"] += SCALING
        body = {name: value for name, value in body.items() if name not in OF_STREAMS}
    return emr_serverless.run_id(launch.application, job.client.start_job_run(**body)["jobRunId"])


def canary_jobs(stack: DeployedStack, settings: Settings) -> list[CanaryJob]:
    """Return a job for each engine of each lane that the settings name; for several shards, the first shard's job."""
    jobs = stack.resources
    lanes = [("stream", Lane.STREAM, jobs.stream_job, settings.stream.engine, settings.stream.worker_type)]
    batch = settings.batch
    lanes += [(f"batch-{name}", Lane.BATCH, jobs.batch_job, name, batch.worker_type) for name in batch.engines]
    found = []
    for name, lane, job, engine_name, worker_type in lanes:
        engine = ENGINES[engine_name]
        driver = engine.stream_driver(worker_type) if lane == Lane.STREAM else engine.worker(worker_type)
        dollars = (driver + engine.worker(worker_type)).at(engine.prices(settings)) / 60
        client = stack.open_client(engine.service)
        found.append(CanaryJob(stack, name, lane, job, engine, worker_type, client, dollars))
    return found


LOG_MINUTES = 3
"""Maximum time until CloudWatch finds a line of a run's log."""
ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class _Run:
    job: CanaryJob
    id: str
    deadline: float


def run_canary(stack: DeployedStack, settings: Settings, athena: str | None = None) -> Answer:
    """Print what it may cost, run it and return its findings; ``athena`` is the workgroup for Iceberg tables."""
    jobs = canary_jobs(stack, settings)
    names, dollars = ", ".join(job.name for job in jobs), sum(job.dollars_per_minute for job in jobs)
    typer.echo(
        f"canary of {stack.name}: {names}; about ${dollars * 2:.2f}, at most ${dollars * TIMEOUT_MINUTES:.2f}", err=True
    )
    canary = Canary(stack, settings)
    with ended_by_signal(), working("the jobs run; Ctrl-C ends them"):
        found = canary.run(jobs)
        if athena is not None:
            found += ask_athena(stack, athena)
    return answer_of(found, seen=canary.seen)


@dataclass
class Canary:
    """One canary of one stack; ``wait`` pauses for a number of seconds between two looks."""

    stack: DeployedStack
    settings: Settings
    wait: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    seen: dict[str, Any] = field(default_factory=dict)
    """Versions and environment that each job's run has reported, by job."""
    _name: str = field(default_factory=lambda: f"{datetime.now(UTC):{NAME_TIME}}-{secrets.token_hex(3)}")
    _runs: list[_Run] = field(default_factory=list)
    """The runs that have not ended."""
    _findings: list[Finding] = field(default_factory=list)

    def run(self, jobs: Sequence[CanaryJob]) -> list[Finding]:
        """Run all jobs and return their findings.

        Remains of earlier canaries are removed at the start, and those of this canary at the end, even after an error
        or Ctrl-C. A canary that may still be running is not disturbed.
        """
        self._remove()
        try:
            request = self._prepare()
            for job in jobs:
                self._try(job.name, "start", partial(self._start, job, request))
            for run in list(self._runs):
                self._try(run.job.name, "run", partial(self._finish, run))
        finally:
            for run in self._runs:
                self._try(run.job.name, "stop", partial(run.job.stop, run.id))
            self._remove()
        return self._findings

    def _add(self, job: str, check: str, state: Readiness, text: str) -> None:
        self._findings.append(Finding(f"{job}: {check}", state, text))

    def _try(self, job: str, check: str, act: Callable[[], str | None]) -> None:
        """Add a finding with the text that ``act`` returns, if any, or with what to do after its error."""
        found = finding_of(f"{job}: {check}", act)
        if found.text:
            self._findings.append(found)

    def _prepare(self) -> CanaryRequest:
        """Put an object to read, and delete another one. Their events have no effect: ``route`` leaves them out."""
        name, s3, bucket = self._name, self.stack.s3, self.stack.resources.input_bucket
        kept = s3.put_object(Bucket=bucket, Key=canary_key(f"{name}/object"), Body=BODY)
        key = canary_key(f"{name}/deleted")
        deleted = s3.put_object(Bucket=bucket, Key=key, Body=BODY).get("VersionId", "")
        versions: dict[str, Any] = {"VersionId": deleted} if deleted else {}
        s3.delete_object(Bucket=bucket, Key=key, **versions)
        return CanaryRequest(name, "", kept["ETag"].strip('"'), kept.get("VersionId", ""), deleted)

    def _start(self, job: CanaryJob, common: CanaryRequest) -> None:
        if (alive := job.alive()) is not None:
            stop = f"hybrid-router stream stop{self.stack.options}"
            text = f"the run {alive} of the stream is alive and was left alone: run '{stop}' first"
            self._add(job.name, "start", Readiness.SKIPPED, text)
            return
        run = job.start(replace(common, job=job.name))
        seconds = job.engine.max_wait_seconds + 60 * (START_MINUTES + TIMEOUT_MINUTES)
        self._runs.append(_Run(job, run, self.clock() + seconds))

    def _finish(self, run: _Run) -> None:
        name = run.job.name
        while (bill := run.job.bill(run.id)) is None and self.clock() < run.deadline:
            self._pause()
        if bill is None:
            run.job.stop(run.id)
        self._runs.remove(run)
        self._add_report(run, bill)
        if name in self.seen:
            self._try(name, "alarm line", partial(self._find_alarm_line, run))
        self._try(name, "billed", partial(self._bill, run))

    def _add_report(self, run: _Run, bill: Bill | None) -> None:
        name, where = run.job.name, f"'{log_of_run(self.stack, run.id, run.job.lane)}'"
        if bill is None:
            text = f"{run.id} did not end in time and was stopped: look at {where}"
            self._add(name, "run", Readiness.TO_DO, text)
            return
        key = canary_report_key(CanaryRequest(self._name, name).run)
        report = find_document(self.stack.s3, self.stack.resources.control_bucket, key)
        if bill.state != SUCCEEDED or report is None:
            check = "imports" if "ModuleNotFoundError" in bill.reason or "ImportError" in bill.reason else "run"
            text = f"{run.id} {bill.state}: {bill.reason}: look at {where}"
            self._add(name, check, Readiness.TO_DO, text)
        if report is None:
            return
        for item in report["checks"]:
            state = Readiness.OK if item["problem"] is None else Readiness.TO_DO
            self._add(name, item["check"], state, item["problem"] or "")
        self.seen[name] = report["seen"]
        self._add(name, "seen", Readiness.OK, _describe(report["seen"]))

    def _find_alarm_line(self, run: _Run) -> str:
        """Return where the line was found, by the pattern of the stack's filter; raises if it was not found."""
        group, stream = log_stream(self.stack, run.id)
        end = self.clock() + 60 * LOG_MINUTES
        while not self._has_alarm_line(run, group, stream):
            if self.stack.local or self.clock() > end:
                raise HybridRouterError(
                    f"the filter of the log group {group} does not find the line ALARM in {stream}: look at its "
                    "filter and at the log; the alarm JobLines stays silent"
                )
            self._pause()
        return "in the file of the run" if self.stack.local else f"log group {group}"

    def _has_alarm_line(self, run: _Run, group: str, stream: str) -> bool:
        if self.stack.local:
            # The local cloud keeps the logs of job runs in files.
            lines = local_log(self.stack, run.id).read_text(encoding="utf-8").splitlines()
            return any(line.split(" ")[1:2] == ["ALARM"] for line in lines)
        logs = self.stack.open_client("logs")
        filters = logs.describe_metric_filters(logGroupName=group)["metricFilters"]
        return any(
            page["events"]
            for item in filters
            for page in logs.get_paginator("filter_log_events").paginate(
                logGroupName=group, logStreamNamePrefix=stream, filterPattern=item["filterPattern"]
            )
        )

    def _bill(self, run: _Run) -> str:
        bill = run.job.bill(run.id)
        if bill is None:
            return "its engine reports no time"
        dollars = bill.priced(ENGINES[bill.engine].prices(self.settings)) / 1e6
        return f"{bill.seconds} s, {format_dollars(dollars)}{'' if bill.final else ' (estimated)'}, run {run.id}"

    def _remove(self) -> None:
        """Remove objects, uploads and rows of this and of ended canaries; add a finding for each place that refuses."""
        resources = self.stack.resources
        for bucket in (resources.input_bucket, *resources.output_buckets, resources.control_bucket):
            prefix = canary_report_key("").removesuffix(".json") if bucket == resources.control_bucket else CANARY
            self._try(ACCOUNT, "clean-up", partial(self._empty, bucket, prefix))
        self._try(ACCOUNT, "clean-up", partial(self.stack.ledger.canaries.remove, self._may_remove))

    def _empty(self, bucket: str, prefix: str) -> None:
        s3: Any = self.stack.s3
        for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix):
            for upload in page.get("Uploads", ()):
                if self._may_remove(upload["Key"].removeprefix(prefix)):
                    abort_upload(s3, bucket, upload["Key"], upload["UploadId"])
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
            for item in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                if self._may_remove(item["Key"].removeprefix(prefix)):
                    s3.delete_object(Bucket=bucket, Key=item["Key"], VersionId=item["VersionId"])

    def _may_remove(self, run: str) -> bool:
        """Whether a run, by its name, belongs to this canary or to one that must have ended by now."""
        return run.startswith(f"{self._name}/") or run < f"{datetime.now(UTC) - MAX_DURATION:{NAME_TIME}}"

    def _pause(self) -> None:
        self.wait(0.5 if self.stack.local else 5)


def _describe(seen: dict[str, Any]) -> str:
    facts = {name: value for name, value in {**seen, **seen["driver"]}.items() if not isinstance(value, list | dict)}
    texts = [f"{name} {value}" for name, value in facts.items()]
    return f"{', '.join(texts)}; variables: {', '.join(seen['driver']['environment'])}"


MAX_TABLES = 3
MAX_COLUMNS = 50
MAX_ROWS = 1000
MAX_QUERY_SECONDS = 120


def ask_athena(stack: DeployedStack, workgroup: str, wait: Callable[[float], object] = time.sleep) -> Iterator[Finding]:
    """Yield whether Athena shows values, not NULLs, in the stage's first Iceberg tables."""
    database, tables = stack.resources.tables_database, list[Mapping[str, Any]]()

    def list_tables() -> None:
        pages = stack.glue.get_paginator("get_tables").paginate(DatabaseName=database)
        tables.extend(islice((table for page in pages for table in page["TableList"]), MAX_TABLES))
        if not tables:
            raise NotFoundError("it has no table yet")

    if (listed := finding_of(f"athena: {database}", list_tables)).text:
        yield listed
    for table in tables:
        yield finding_of(f"athena: {table['Name']}", partial(_examine, stack, workgroup, table, wait))


def _examine(stack: DeployedStack, workgroup: str, table: Mapping[str, Any], wait: Callable[[float], object]) -> str:
    names = [item["Name"] for item in table["StorageDescriptor"]["Columns"]]
    columns = [name for name in names if name not in PARTITION_COLUMNS][:MAX_COLUMNS]
    items = (stack.resources.tables_database, table["Name"], *columns)
    place, source, *texts = (quoted(item, Dialect.ATHENA) for item in items)
    counts = ", ".join(["count(*)", *(f"count({text})" for text in texts)])
    statement = f"SELECT {counts} FROM (SELECT * FROM {place}.{source} LIMIT {MAX_ROWS})"  # noqa: S608
    athena = stack.open_client("athena")
    query = athena.start_query_execution(QueryString=statement, WorkGroup=workgroup)["QueryExecutionId"]
    for _ in range(MAX_QUERY_SECONDS):
        status = athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Status"]
        if status["State"] not in ("QUEUED", "RUNNING"):
            break
        wait(1)
    else:
        athena.stop_query_execution(QueryExecutionId=query)
    if status["State"] != "SUCCEEDED":
        reason = status.get("StateChangeReason", f"after {MAX_QUERY_SECONDS} seconds")
        raise TerminalError(f"query {query} {status['State']}: {reason}")
    _, row = athena.get_query_results(QueryExecutionId=query)["ResultSet"]["Rows"]
    rows, *filled = (int(cell["VarCharValue"]) for cell in row["Data"])
    if not rows:
        raise NotFoundError("it has no rows yet")
    text = f"of {format_count(rows, 'row')} {sum(map(bool, filled))} of {len(filled)} columns have values"
    if any(filled):
        return text
    raise TerminalError(f"{text}: Athena does not find the columns in the files; do not move readers to it")
