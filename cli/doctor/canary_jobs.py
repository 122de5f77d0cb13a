"""The jobs of a stack as a canary starts, watches and stops them: each as in production, and as small as it can be."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cli.inspect.stream_shards import read_shards
from lake.canary import CANARY_ARGUMENT
from lake.engines import Engine
from lake.job_runs import TERMINAL_EMR_STATES, TERMINAL_STATES, emr_run_id, split_emr_run_id
from lake.manifest import Lane
from lake.settings.workers import DPUS, EMR_DRIVER_GB, EMR_DRIVER_VCPUS, MEMORY_GIB, WORKERS
from lake.shards import FIRST_SHARD
from lake.stream_launch import STREAM_LAUNCH, StreamLaunch

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from lake.canary import CanaryRequest
    from lake.settings import Settings

TIMEOUT_MINUTES = 5
"""After this time the engine ends a run, also where nobody watches it any more; the least of EMR Serverless."""
START_MINUTES = 8.0
FLEX_START_MINUTES = 22.0
"""Flex waits up to 20 minutes for spare capacity (AWS Glue Developer Guide, "Flexible execution")."""
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
        return FLEX_START_MINUTES if self.engine is Engine.GLUE_FLEX else START_MINUTES

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
        if state not in TERMINAL_STATES:
            return None
        return state == "SUCCEEDED", f"{state}: {found.get('ErrorMessage', '')}"

    def stop(self, run: str) -> None:
        self.stack.glue.batch_stop_job_run(JobName=self.glue_job, JobRunIds=[run])


@dataclass(frozen=True, slots=True)
class EmrCanary(CanaryJob):
    """A job on EMR Serverless."""

    emr: Any
    """The client of EMR Serverless."""

    def start(self, request: CanaryRequest) -> str:
        stream = self.lane == Lane.STREAM
        launch = replace(self._stream_launch() if stream else self._batch_launch(), timeout_minutes=TIMEOUT_MINUTES)
        body = launch.request(FIRST_SHARD, self.glue_job, secrets.token_hex(16))
        body["jobDriver"]["sparkSubmit"]["entryPointArguments"] += [ARGUMENT, request.to_text()]
        if not stream:
            body = {name: value for name, value in body.items() if name not in OF_STREAMS}
        return emr_run_id(launch.application, self.emr.start_job_run(**body)["jobRunId"])

    def end_of(self, run: str) -> tuple[bool, str] | None:
        found = self.emr.get_job_run(**self._ids(run))["jobRun"]
        state = found["state"]
        return (
            (state == "SUCCESS", f"{state}: {found.get('stateDetails', '')}") if state in TERMINAL_EMR_STATES else None
        )

    def stop(self, run: str) -> None:
        self.emr.cancel_job_run(**self._ids(run))

    def _ids(self, run: str) -> dict[str, str]:
        application, job_run = split_emr_run_id(run)
        return {"applicationId": application, "jobRunId": job_run}

    def _stream_launch(self) -> StreamLaunch:
        """That of the functions which start the stream, from the environment of one of them."""
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
    price, batch, stream, jobs = settings.price, settings.batch, settings.stream, stack.resources
    vcpu_hour, gb_hour = price.emr_rates(settings.emr.architecture)
    emr = stack.open_client("emr-serverless") if settings.uses_emr else None

    def glue_dollars(worker_type: str, engine: Engine) -> float:
        return WORKERS_OF_RUN * DPUS[worker_type] * price.dpu_rate(engine) / 60

    found: list[CanaryJob] = []
    if stream.on_emr:
        vcpus = EMR_DRIVER_VCPUS + WORKERS[stream.worker_type]
        dollars = (vcpus * vcpu_hour + (EMR_DRIVER_GB + MEMORY_GIB[stream.worker_type]) * gb_hour) / 60
        found.append(EmrCanary(stack, "stream", Lane.STREAM, jobs.stream_job, dollars, emr))
    else:
        dollars = glue_dollars(stream.worker_type, Engine.GLUE)
        found.append(GlueCanary(stack, "stream", Lane.STREAM, jobs.stream_job, dollars, stream.worker_type))
    for engine in map(Engine, batch.engines):
        name, kind = f"batch-{engine}", batch.worker_type
        if engine.on_glue:
            dollars = glue_dollars(kind, engine)
            found.append(GlueCanary(stack, name, Lane.BATCH, jobs.batch_job, dollars, kind, engine))
        else:
            dollars = WORKERS_OF_RUN * (WORKERS[kind] * vcpu_hour + MEMORY_GIB[kind] * gb_hour) / 60
            found.append(EmrCanary(stack, name, Lane.BATCH, jobs.batch_job, dollars, emr))
    return found


def _quoted(expression: str) -> str:
    """The first text of a JSONata expression."""
    return expression.split("'")[1]
