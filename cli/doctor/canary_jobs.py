"""The jobs of a stack as a canary starts, watches and stops them: each as in production, and as small as it can be."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.inspect.stream_shards import read_shards
from lake.canary import CANARY_ARGUMENT, CanaryRequest
from lake.engines import ENGINES, Engine, EngineDescription, Units, emr_serverless, glue
from lake.engines.stream_launch import STREAM_LAUNCH, StreamLaunch
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
class CanaryJob(ABC):
    """One job on one engine. Each method raises botocore's errors."""

    stack: DeployedStack
    name: str
    lane: Lane
    glue_job: str
    """Name of the job; runs on EMR Serverless have it too."""
    dollars_per_minute: float

    @property
    def clients(self) -> dict[str, Any]:
        """Service -> client, of the service that runs the job."""
        return {"glue": self.stack.glue}

    @property
    def start_minutes(self) -> float:
        """How long a run may wait for its workers."""
        return START_MINUTES

    def alive(self) -> str | None:
        """A run that a canary would disturb; None: there is none."""
        if self.lane != Lane.STREAM:
            return None
        return next((run for shard in read_shards(self.stack) for run in shard.runs), None)

    @abstractmethod
    def start(self, request: CanaryRequest) -> str:
        """Start a run; returns the id by which it would hold leases."""

    @abstractmethod
    def end_of(self, run: str) -> tuple[bool, str] | None:
        """Whether the run has succeeded, and what its engine reports; None: it has not ended."""

    @abstractmethod
    def stop(self, run: str) -> None:
        """End the run at once."""


@dataclass(frozen=True, slots=True)
class GlueCanary(CanaryJob):
    """A Glue job."""

    worker_type: str
    engine: Engine | None = None
    """None: the streaming job, which has no execution class."""

    @property
    def start_minutes(self) -> float:
        wait = 0.0 if self.engine is None else ENGINES[self.engine].max_wait_seconds / 60
        return max(START_MINUTES, wait + SPARE_START_MINUTES)

    def start(self, request: CanaryRequest) -> str:
        execution = {"ExecutionClass": "FLEX" if self.engine is Engine.GLUE_FLEX else "STANDARD"}
        answer = self.stack.glue.start_job_run(
            JobName=self.glue_job,
            WorkerType=self.worker_type,
            NumberOfWorkers=WORKERS_OF_RUN,
            Timeout=TIMEOUT_MINUTES,
            Arguments={ARGUMENT: request.to_text()},
            **(execution if self.engine is not None else {}),
        )
        return str(answer["JobRunId"])

    def end_of(self, run: str) -> tuple[bool, str] | None:
        found = self.stack.glue.get_job_run(JobName=self.glue_job, RunId=run)["JobRun"]
        state = found["JobRunState"]
        if state not in glue.TERMINAL_STATES:
            return None
        return state == "SUCCEEDED", f"{state}: {found.get('ErrorMessage', '')}"

    def stop(self, run: str) -> None:
        self.stack.glue.batch_stop_job_run(JobName=self.glue_job, JobRunIds=[run])


@dataclass(frozen=True, slots=True)
class EmrCanary(CanaryJob):
    """A job on EMR Serverless."""

    emr: Any
    """The client of EMR Serverless."""

    @property
    def clients(self) -> dict[str, Any]:
        return {"emr-serverless": self.emr}

    def start(self, request: CanaryRequest) -> str:
        stream = self.lane == Lane.STREAM
        launch = replace(self._stream_launch() if stream else self._batch_launch(), timeout_minutes=TIMEOUT_MINUTES)
        body = launch.request(FIRST_SHARD, self.glue_job, secrets.token_hex(16))
        body["jobDriver"]["sparkSubmit"]["entryPointArguments"] += [ARGUMENT, request.to_text()]
        if not stream:
            body = {name: value for name, value in body.items() if name not in OF_STREAMS}
        return emr_serverless.run_id(launch.application, self.emr.start_job_run(**body)["jobRunId"])

    def end_of(self, run: str) -> tuple[bool, str] | None:
        found = self.emr.get_job_run(**self._ids(run))["jobRun"]
        state = found["state"]
        if state not in emr_serverless.TERMINAL_STATES:
            return None
        return state == "SUCCESS", f"{state}: {found.get('stateDetails', '')}"

    def stop(self, run: str) -> None:
        self.emr.cancel_job_run(**self._ids(run))

    def _ids(self, run: str) -> dict[str, str]:
        application, job_run = emr_serverless.split_run_id(run)
        return {"applicationId": application, "jobRunId": job_run}

    def _stream_launch(self) -> StreamLaunch:
        """How the stream is started, from the environment of a function that does it."""
        function = self.stack.functions.get_function_configuration(FunctionName=self.stack.outputs.stream_control)
        return StreamLaunch.from_text(function["Environment"]["Variables"][STREAM_LAUNCH])

    def _batch_launch(self) -> StreamLaunch:
        """The values of the stack in the state machine ``overnight``, with which its expressions begin."""
        machine = self.stack.sfn.describe_state_machine(stateMachineArn=self.stack.outputs.overnight)
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
    batch, stream, jobs = settings.batch, settings.stream, stack.resources
    emr = stack.open_client("emr-serverless") if settings.uses_emr else None

    def add(name: str, lane: Lane, job: str, engine: EngineDescription, driver: Units, worker_type: str) -> None:
        dollars = (driver + engine.worker(worker_type)).at(engine.prices(settings)) / 60
        if engine.service == "glue":
            batch_engine = engine.name if lane == Lane.BATCH else None
            found.append(GlueCanary(stack, name, lane, job, dollars, worker_type, batch_engine))
        else:
            found.append(EmrCanary(stack, name, lane, job, dollars, emr))

    found: list[CanaryJob] = []
    engine, kind = ENGINES[stream.engine], stream.worker_type
    add("stream", Lane.STREAM, jobs.stream_job, engine, engine.stream_driver(kind), kind)
    for engine in (ENGINES[name] for name in batch.engines):
        kind = batch.worker_type
        add(f"batch-{engine.name}", Lane.BATCH, jobs.batch_job, engine, engine.worker(kind), kind)
    return found


def _quoted(expression: str) -> str:
    """The first text of a JSONata expression."""
    return expression.split("'")[1]
