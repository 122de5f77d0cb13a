"""EMR Serverless as an engine: one application for each lane; its runs are named after their jobs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotocoreConnectionError

from lake.engines.description import (
    ARM,
    HOUR_MILLISECONDS,
    MEMORY_GIB,
    NO_REASON,
    SUCCEEDED,
    WORKERS,
    Bill,
    Engine,
    EngineDescription,
    Units,
    end_reason,
    reason_of,
)
from lake.errors import InvalidInputError, TransientError
from lake.faults import error_code, suppress_codes
from lake.shards import FIRST_SHARD, SHARD_ARGUMENT
from lake.time import iso_utc

if TYPE_CHECKING:
    from lake.ledger import StreamRow
    from lake.settings import Settings, StreamSettings

STREAMING = "STREAMING"
"""The mode of a run without an end of its own (EMR Serverless API reference, StartJobRun)."""
STREAM_LAUNCH = "STREAM_LAUNCH"
BATCH_LAUNCH = "BATCH_LAUNCH"
"""Environment variables with an ``EmrLaunch``: the first for the functions that start a streaming run on EMR
Serverless, the second for ``plan``."""
NO_RETRIES = 1
"""Maximum number of failed attempts of a streaming run in an hour: 1 means no retries (Amazon EMR Serverless User
Guide, "Job resiliency"). A second attempt would have the id of the first one, which holds manifests; instead
``stream_control`` starts another run."""
SUCCESS = "SUCCESS"
TERMINAL_STATES = frozenset({SUCCESS, "FAILED", "CANCELLED"})
"""API reference of EMR Serverless, JobRun."""
CANCELLING = "CANCELLING"
LIVE_STATES = ("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", CANCELLING)
UNKNOWN_RUN_CODES = frozenset({"ResourceNotFoundException", "ValidationException"})
PREFIX = "emr-serverless:"
"""Prefix of the id by which a run holds its leases."""
APPLICATION_VARIABLE, JOB_RUN_VARIABLE = "SERVERLESS_EMR_VIRTUAL_CLUSTER_ID", "SERVERLESS_EMR_JOB_ID"
"""Environment variables of a driver. AWS's pages do not list them; AWS's own code for job metrics and OpenSearch's
Spark extension read them. Without them a run does not know its id, and its lease alone decides."""
START_SECONDS = 90.0
"""Assumed: an application without pre-initialized workers."""
ARM_PRICE = 0.8
"""Price on Arm as a share of the price on x86-64: $0.042094 of $0.052624 a vCPU hour and $0.004628 of $0.0057785 a GB
hour (AWS Price List, us-east-1, 2026-09-24, as others quote it)."""
DRIVER_VCPUS, DRIVER_GB = 2, 8
"""Size of a streaming job's driver: Spark keeps up to 1 GiB of results (``spark.driver.maxResultSize``), which fit in a
heap of 5 GB."""
HEAP_SIXTEENTHS = 10
"""Share of a worker's memory that the JVM gets, in sixteenths: as assumed of Glue."""
START_SETTLES = timedelta(minutes=1)
"""Assumed time after which a started run is in the list of runs, or its start was abandoned."""
RETRIED_ERRORS = frozenset({"ConflictException", "ValidationException"})
"""Answers to StartJobRun after which the start is retried: the application may be stopping, or the same request from
another caller may not have been answered yet (assumed: AWS documents only "conflict in the current state of the
resource"). An invalid request gets the second code too; its error persists, and the watch of the stream notifies
people."""
IMMEDIATELY = 0
"""Grace period of a cancelled run in seconds: the run was already asked to end (Amazon EMR Serverless User Guide, "EMR
Serverless job run cancellation with grace period"; the default of a streaming run is 120)."""


@dataclass(frozen=True, slots=True)
class EmrLaunch:
    """The parameters of a run's start, which the stack passes to functions in their environment."""

    application: str
    role: str
    """ARN of the execution role of its runs."""
    entry_point: str
    arguments: str
    """Arguments of the script, separated by spaces; no argument contains a space."""
    spark_submit_parameters: str
    timeout_minutes: int
    """After this time EMR Serverless cancels a run."""
    log_group: str
    log_uri: str = ""
    """Where event logs are stored in addition; empty for nowhere."""
    keeps_event_logs: bool = True
    """Whether EMR Serverless keeps event logs for its own Spark UI."""

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> EmrLaunch:
        """Raises ``InvalidInputError``."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"the stack's launch of EMR Serverless cannot be read ({error}): deploy the stack again to set it"
            ) from error

    def request(self, shard: str, name: str, token: str) -> dict[str, Any]:
        """The parameters of StartJobRun for the job ``name`` of a shard. Pure.

        ``token`` is the client token: a repeated request finds the run of the first one.
        """
        own = [] if shard == FIRST_SHARD else [f"--{SHARD_ARGUMENT}", shard]
        monitoring: dict[str, Any] = {
            "cloudWatchLoggingConfiguration": {"enabled": True, "logGroupName": self.log_group},
            "managedPersistenceMonitoringConfiguration": {"enabled": self.keeps_event_logs},
        }
        if self.log_uri:
            monitoring["s3MonitoringConfiguration"] = {"logUri": self.log_uri}
        return {
            "applicationId": self.application,
            "clientToken": token,
            "executionRoleArn": self.role,
            "name": name,
            "mode": STREAMING,
            "retryPolicy": {"maxFailedAttemptsPerHour": NO_RETRIES},
            "executionTimeoutMinutes": self.timeout_minutes,
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": self.entry_point,
                    "entryPointArguments": [*self.arguments.split(" "), *own],
                    "sparkSubmitParameters": self.spark_submit_parameters,
                }
            },
            "configurationOverrides": {"monitoringConfiguration": monitoring},
        }


class EmrServerless(EngineDescription):
    def worker(self, worker_type: str) -> Units:
        return Units(vcpu=WORKERS[worker_type], gb=MEMORY_GIB[worker_type])

    def stream_driver(self, worker_type: str) -> Units:  # noqa: ARG002
        """The driver is smaller than an executor."""
        return Units(vcpu=DRIVER_VCPUS, gb=DRIVER_GB)

    def min_stream_executors(self, stream: StreamSettings) -> int:
        return stream.emr_min_executors

    def prices(self, settings: Settings) -> Units:
        share = ARM_PRICE if settings.emr.architecture == ARM else 1
        return Units(vcpu=share * settings.price.emr_vcpu_hour, gb=share * settings.price.emr_gb_hour)

    def room(self, settings: Settings, glue_dpus: float, glue_runs: int) -> tuple[float, int]:  # noqa: ARG002
        return settings.emr.max_vcpus, settings.batch.max_runs

    def own_run(self, arguments: Mapping[str, str], environment: Mapping[str, str]) -> str | None:  # noqa: ARG002
        application, job_run = environment.get(APPLICATION_VARIABLE), environment.get(JOB_RUN_VARIABLE)
        return run_id(application, job_run) if application and job_run else None

    def has_ended(self, client: Any, jobs: Iterable[str], run: str) -> bool:  # noqa: ANN401, ARG002
        """False also if the service cannot be reached, as from a job's machines: the lease alone decides then."""
        try:
            found = _get_job_run(client, run)
        except (BotocoreConnectionError, HTTPClientError):
            return False
        return found is not None and found["state"] in {*TERMINAL_STATES, CANCELLING}

    def bill(self, client: Any, job: str, run: str) -> Bill | None:  # noqa: ANN401, ARG002
        """Uses ``billedResourceUtilization``, which the service fills in some time after the end."""
        found = _get_job_run(client, run)
        # Not the time of the last change: the day of a cost must not depend on when it is read.
        if found is None or found["state"] not in TERMINAL_STATES or found.get("endedAt") is None:
            return None
        billed = found.get("billedResourceUtilization") or {}
        state = SUCCEEDED if found["state"] == SUCCESS else found["state"]
        arguments = list(found.get("jobDriver", {}).get("sparkSubmit", {}).get("entryPointArguments", ()))
        return Bill(
            run,
            arguments[arguments.index("--run") + 1] if "--run" in arguments[:-1] else None,
            self.name,
            iso_utc(found["createdAt"]),
            iso_utc(found["endedAt"]),
            int(found.get("totalExecutionDurationSeconds", 0)),
            vcpu_milliseconds=round(billed.get("vCPUHour", 0) * HOUR_MILLISECONDS),
            gb_milliseconds=round(billed.get("memoryGBHour", 0) * HOUR_MILLISECONDS),
            final=bool(billed),
            state=state,
            reason=reason_of(state, found.get("stateDetails")),
        )

    def end_run(self, client: Any, job: str, run: str) -> None:  # noqa: ANN401, ARG002
        application, job_run = split_run_id(run)
        client.cancel_job_run(applicationId=application, jobRunId=job_run, shutdownGracePeriodInSeconds=IMMEDIATELY)

    def stream_runs(self, client: Any, job: str, application: str, launch: EmrLaunch | None = None) -> EmrStreamRuns:  # noqa: ANN401
        return EmrStreamRuns(client, job, application, launch)

    def log_stream(self, stack: str, run: str, stream_application: str) -> tuple[str, str]:
        """Amazon EMR Serverless User Guide, "Logging for EMR Serverless with CloudWatch"."""
        application, service_id = split_run_id(run)
        group, attempt = log_group(stack), ""
        if application == stream_application:
            # Each attempt of a streaming run has its own (the same guide, "Job resiliency"); ours have one.
            group, attempt = stream_log_group(stack), "/attempts/1"
        return group, f"/applications/{application}/jobs/{service_id}{attempt}/SPARK_DRIVER/stdout"


EMR_SERVERLESS = EmrServerless(
    name=Engine.EMR_SERVERLESS,
    service="emr-serverless",
    # Its largest worker has 16 vCPUs (Amazon EMR Serverless User Guide, "Supported worker configurations").
    worker_types=("G.1X", "G.2X", "G.4X"),
    start_seconds=START_SECONDS,
    queues_runs=True,
    run_prefix=PREFIX,
    reached_by_jobs=False,  # It is not certain which services its machines reach without a VPC.
)


@dataclass(frozen=True, slots=True)
class EmrStreamRuns:
    emr: Any
    job: str
    application: str
    launch: EmrLaunch | None

    def start(self, shard: str, row: StreamRow, now: datetime) -> str | None:
        """Starts no run while one is live: EMR Serverless would run both in parallel, or queue the second one. Callers
        that have read the same row send the same client token, and so start one run.
        """
        assert self.launch is not None, "the stack passes it to each function that starts a streaming run"
        if self.live():
            return None
        if row.started_at is not None and now - datetime.fromisoformat(row.started_at) < START_SETTLES:
            return row.started_run
        # The row changes with each run that is started or begins, and the launch with each deployment.
        start = f"{self.job} {self.launch} {row.run} {row.started_run}"
        token = hashlib.sha256(start.encode()).hexdigest()
        try:
            started = self.emr.start_job_run(**self.launch.request(shard, self.job, token))
        except ClientError as error:
            if error_code(error) not in RETRIED_ERRORS:
                raise
            if self.live():
                return None
            raise TransientError(
                f"EMR Serverless cannot start the streaming job {self.job} now ({error}): it is retried; if that "
                "does not help, deploy the stack again"
            ) from error
        return str(started["jobRunId"])

    def end_cause(self, row: StreamRow) -> str:
        begun = None if row.started_at is None else datetime.fromisoformat(row.started_at) - START_SETTLES
        listed = self._list(**{} if begun is None else {"createdAtAfter": begun})
        run = next((run for run in listed if run["id"] == row.started_run), None)
        return NO_REASON if run is None else end_reason(run["state"], run.get("stateDetails"))

    def live(self) -> list[str]:
        """The ids are made by ``run_id``; the application has the runs of all shards."""
        runs = self._list(states=list(LIVE_STATES))
        return [run_id(self.application, run["id"]) for run in runs if run.get("name") == self.job]

    def end(self, runs: Sequence[str]) -> None:
        """Sends one request for each run; leaves a run that has ended meanwhile as it is."""
        for run in runs:
            try:
                EMR_SERVERLESS.end_run(self.emr, self.job, run)
            except ClientError as error:
                if error_code(error) not in UNKNOWN_RUN_CODES or run in self.live():
                    raise

    def _list(self, **request: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
        pages = self.emr.get_paginator("list_job_runs")
        for page in pages.paginate(applicationId=self.application, mode=STREAMING, **request):
            yield from page["jobRuns"]


def run_id(application: str, job_run: str) -> str:
    """The id by which a run holds its leases: it has all that a request to the service needs."""
    return f"{PREFIX}{application}:{job_run}"


def split_run_id(run: str) -> tuple[str, str]:
    """The application, and the id that the service gave the run: the inverse of ``run_id``."""
    application, _, job_run = run.removeprefix(PREFIX).partition(":")
    return application, job_run


def heap_gb(gigabytes: int) -> int:
    """GB of the JVM's heap in a worker with ``gigabytes`` of memory; the rest is for memory outside the heap."""
    return gigabytes * HEAP_SIXTEENTHS // 16


def log_group(stack: str) -> str:
    return f"/aws/emr-serverless/{stack}"


def stream_log_group(stack: str) -> str:
    return f"/aws/emr-serverless/{stack}/stream"


def _get_job_run(client: Any, run: str) -> Mapping[str, Any] | None:  # noqa: ANN401
    application, job_run = split_run_id(run)
    with suppress_codes(*UNKNOWN_RUN_CODES):
        answer: dict[str, Mapping[str, Any]] = client.get_job_run(applicationId=application, jobRunId=job_run)
        return answer["jobRun"]
    return None
