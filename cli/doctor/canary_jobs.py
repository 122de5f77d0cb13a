"""The jobs of a stack as a canary starts, watches and stops them: each as in production, and as small as it can be."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.inspect.backlog import read_shards
from lake.bills import SUCCEEDED, Bill
from lake.canary import CANARY_ARGUMENT, CanaryRequest
from lake.engines import ENGINES, Engine, EngineDescription, emr_serverless
from lake.engines.emr_serverless import STREAM_LAUNCH, StreamLaunch
from lake.manifest import Lane
from lake.settings import Settings
from lake.shards import FIRST_SHARD

TIMEOUT_MINUTES = 5
"""After this time the engine ends a run, also where nobody watches it any more; the least of EMR Serverless."""
START_MINUTES = 8.0
SPARE_START_MINUTES = 2.0
"""Time after the longest wait for spare capacity."""
WORKERS_OF_RUN = 2
"""The driver and one executor."""
ARGUMENT = f"--{CANARY_ARGUMENT}"
EXECUTORS = "--conf spark.dynamicAllocation.maxExecutors="
"""How the state machine's expression begins the last property, whose value the plan knows."""
SCALING = " ".join(
    f"--conf spark.{name}=1"
    for name in ("dynamicAllocation.maxExecutors", "dynamicAllocation.initialExecutors", "executor.instances")
)
OF_STREAMS = ("mode", "retryPolicy")
"""What only the request of a streaming run has."""


@dataclass(frozen=True, slots=True)
class CanaryJob:
    """One job on one engine. Each method raises botocore's errors."""

    stack: DeployedStack
    name: str
    lane: Lane
    job: str
    """Name of the job, which its runs have on every engine."""
    engine: EngineDescription
    worker_type: str
    client: Any
    """Of the service that runs the job."""
    dollars_per_minute: float

    @property
    def start_minutes(self) -> float:
        """How long a run may wait for its workers."""
        # A streaming job has no execution class, so that it waits for no spare capacity.
        wait = 0.0 if self.lane == Lane.STREAM else self.engine.max_wait_seconds / 60
        return max(START_MINUTES, wait + SPARE_START_MINUTES)

    def alive(self) -> str | None:
        """A run that a canary would disturb; None: there is none."""
        if self.lane != Lane.STREAM:
            return None
        return next((run for shard in read_shards(self.stack) for run in shard.runs), None)

    def start(self, request: CanaryRequest) -> str:
        """Start a run; returns the id by which it would hold leases."""
        return STARTS[self.engine.service](self, request)

    def end_of(self, run: str) -> tuple[bool, str] | None:
        """Whether the run has succeeded, and what its engine reports; None: it has not ended."""
        bill = self.bill(run)
        return None if bill is None else (bill.state == SUCCEEDED, f"{bill.state}: {bill.reason}")

    def bill(self, run: str) -> Bill | None:
        """What the run has used; None until it has ended."""
        return self.engine.bill(self.client, self.job, run)

    def stop(self, run: str) -> None:
        """End the run at once."""
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
    stream = job.lane == Lane.STREAM
    launch = _stream_launch(job.stack) if stream else _batch_launch(job.stack)
    body = replace(launch, timeout_minutes=TIMEOUT_MINUTES).request(FIRST_SHARD, job.job, secrets.token_hex(16))
    body["jobDriver"]["sparkSubmit"]["entryPointArguments"] += [ARGUMENT, request.to_text()]
    if not stream:
        body = {name: value for name, value in body.items() if name not in OF_STREAMS}
    return emr_serverless.run_id(launch.application, job.client.start_job_run(**body)["jobRunId"])


STARTS: dict[str, Callable[[CanaryJob, CanaryRequest], str]] = {
    "glue": _start_on_glue,
    "emr-serverless": _start_on_emr,
}
"""By the service of an engine: what it takes to start a job as small as it can be."""


def _stream_launch(stack: DeployedStack) -> StreamLaunch:
    """How the stream is started, from the environment of a function that does it."""
    function = stack.functions.get_function_configuration(FunctionName=stack.outputs.stream_control)
    return StreamLaunch.from_text(function["Environment"]["Variables"][STREAM_LAUNCH])


def _batch_launch(stack: DeployedStack) -> StreamLaunch:
    """The values of the stack in the state machine ``overnight``, with which its expressions begin."""
    machine = stack.sfn.describe_state_machine(stateMachineArn=stack.outputs.overnight)
    states = json.loads(machine["definition"])["States"]["Runs"]["ItemProcessor"]["States"]
    task = states["RunOnEmr"]["Arguments"]
    submit, monitoring = task["JobDriver"]["SparkSubmit"], task["ConfigurationOverrides"]["MonitoringConfiguration"]
    return StreamLaunch(
        application=task["ApplicationId"],
        role=task["ExecutionRoleArn"],
        entry_point=submit["EntryPoint"],
        arguments=_quoted(submit["EntryPointArguments"]),
        spark_submit_parameters=_quoted(submit["SparkSubmitParameters"]).removesuffix(EXECUTORS) + SCALING,
        timeout_minutes=TIMEOUT_MINUTES,
        log_group=_quoted(monitoring.partition("'LogGroupName': ")[2]),
    )


def canary_jobs(stack: DeployedStack, settings: Settings) -> list[CanaryJob]:
    """A job for each engine of each lane that the settings name; of several shards the first one."""
    jobs = stack.resources
    lanes = [("stream", Lane.STREAM, jobs.stream_job, settings.stream.engine, settings.stream.worker_type)]
    batch = settings.batch
    lanes += [(f"batch-{name}", Lane.BATCH, jobs.batch_job, name, batch.worker_type) for name in batch.engines]
    clients: dict[str, Any] = {"glue": stack.glue}
    found = []
    for name, lane, job, engine_name, worker_type in lanes:
        engine = ENGINES[engine_name]
        if engine.service not in clients:
            clients[engine.service] = stack.open_client(engine.service)
        driver = engine.stream_driver(worker_type) if lane == Lane.STREAM else engine.worker(worker_type)
        dollars = (driver + engine.worker(worker_type)).at(engine.prices(settings)) / 60
        found.append(CanaryJob(stack, name, lane, job, engine, worker_type, clients[engine.service], dollars))
    return found


def _quoted(expression: str) -> str:
    """The first text of a JSONata expression."""
    return expression.split("'")[1]
