"""AWS Glue as an engine, with either execution class: the jobs of the stack, at most one run of each streaming job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from lake.aws_types import GlueClient, JobRunTypeDef
from lake.engines.description import (
    DPUS,
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
from lake.errors import TransientError
from lake.faults import error_code

if TYPE_CHECKING:
    from lake.engines.emr_serverless import EmrLaunch
    from lake.ledger import StreamRow
    from lake.settings import Settings, StreamSettings

TERMINAL_STATES = frozenset({"STOPPED", SUCCEEDED, "FAILED", "TIMEOUT", "ERROR", "EXPIRED"})
STOPPING = "STOPPING"
LIVE_STATES = frozenset({"STARTING", "RUNNING", STOPPING, "WAITING"})
"""AWS Glue Web API Reference, JobRunState."""
UNKNOWN_RUN_CODES = frozenset({"EntityNotFoundException", "InvalidInputException"})
START_SECONDS = 60.0
"""Assumed; not billed."""
FLEX_WAIT_MINUTES = 5.0
"""Assumed time that a run of the class FLEX waits for spare capacity."""
MAX_FLEX_WAIT_SECONDS = 20 * 60.0
"""Listed: a run of the class FLEX is WAITING for at most 20 minutes, then it starts or fails (AWS Glue Developer Guide,
"AWS Glue job run statuses")."""
MIN_STREAM_EXECUTORS = 1
"""Assumed: auto scaling leaves a streaming run one worker in addition to the driver's."""
MAX_LISTED_RUNS = 20
"""Only one run of a streaming job is live at a time: older ones have ended."""


class Glue(EngineDescription):
    def worker(self, worker_type: str) -> Units:
        return Units(dpu=DPUS[worker_type])

    def min_stream_executors(self, stream: StreamSettings) -> int:  # noqa: ARG002
        return MIN_STREAM_EXECUTORS

    def prices(self, settings: Settings) -> Units:
        flex = self.name is Engine.GLUE_FLEX
        return Units(dpu=settings.price.dpu_hour_flex if flex else settings.price.dpu_hour)

    def room(self, settings: Settings, glue_dpus: float, glue_runs: int) -> tuple[float, int]:
        return glue_dpus, min(settings.batch.max_runs, glue_runs)

    def own_run(self, arguments: Mapping[str, str], environment: Mapping[str, str]) -> str | None:  # noqa: ARG002
        return arguments.get("JOB_RUN_ID")

    def has_ended(self, glue: GlueClient, jobs: Iterable[str], run: str) -> bool:
        for job in jobs:
            try:
                state = glue.get_job_run(JobName=job, RunId=run)["JobRun"]["JobRunState"]
            except ClientError as error:
                if error_code(error) not in UNKNOWN_RUN_CODES:
                    raise
            else:
                return state == STOPPING or state in TERMINAL_STATES
        return False

    def bill(self, glue: GlueClient, job: str, run: str) -> Bill | None:
        """The engine of the bill follows the execution class of the run, not this description."""
        try:
            found: Mapping[str, Any] = glue.get_job_run(JobName=job, RunId=run)["JobRun"]
        except ClientError as error:
            if error_code(error) not in UNKNOWN_RUN_CODES:
                raise
            return None
        if found["JobRunState"] not in TERMINAL_STATES:
            return None
        if not {"StartedOn", "CompletedOn", "ExecutionTime"} <= found.keys():
            return None
        return Bill(
            run,
            found.get("Arguments", {}).get("--run"),
            Engine.GLUE_FLEX if found.get("ExecutionClass") == "FLEX" else Engine.GLUE,
            found["StartedOn"],
            found["CompletedOn"],
            int(found["ExecutionTime"]),
            dpu_milliseconds=_dpu_milliseconds(found),
            final="DPUSeconds" in found or not found["ExecutionTime"],
            state=found["JobRunState"],
            reason=reason_of(found["JobRunState"], found.get("ErrorMessage")),
        )

    def end_run(self, glue: GlueClient, job: str, run: str) -> None:
        glue.batch_stop_job_run(JobName=job, JobRunIds=[run])

    def stream_runs(self, glue: GlueClient, job: str, shard: str, launch: EmrLaunch | None) -> GlueStreamRuns:  # noqa: ARG002
        return GlueStreamRuns(glue, job)

    def live_stream_runs(self, glue: GlueClient, job: str, application: str) -> list[str]:  # noqa: ARG002
        return GlueStreamRuns(glue, job).live()

    def log_stream(self, stack: str, run: str, stream_application: str) -> tuple[str, str]:  # noqa: ARG002
        return f"/aws-glue/{stack}/output", run


GLUE = Glue(name=Engine.GLUE, service="glue", worker_types=tuple(WORKERS), start_seconds=START_SECONDS)
GLUE_FLEX = Glue(
    name=Engine.GLUE_FLEX,
    service="glue",
    worker_types=("G.1X", "G.2X"),  # AWS Glue, "Worker types"
    start_seconds=START_SECONDS,
    wait_seconds=60 * FLEX_WAIT_MINUTES,
    max_wait_seconds=MAX_FLEX_WAIT_SECONDS,
)


@dataclass(frozen=True, slots=True)
class GlueStreamRuns:
    glue: GlueClient
    job: str

    def start(self, token: Callable[[timedelta], str]) -> str | None:  # noqa: ARG002
        """Returns None only if a live run proves that one exists. The job's ``MaxConcurrentRuns`` is 1, so Glue refuses
        a second run as a concurrent one; but a full account gets either error as well (AWS Glue API, ``StartJobRun``:
        "too many jobs are being run concurrently", "a resource numerical limit was exceeded").
        """
        exceptions = self.glue.exceptions
        try:
            return self.glue.start_job_run(JobName=self.job)["JobRunId"]
        except (exceptions.ConcurrentRunsExceededException, exceptions.ResourceNumberLimitExceededException) as error:
            if isinstance(error, exceptions.ConcurrentRunsExceededException) and self.live():
                return None
            raise TransientError(
                f"Glue has no room to start the streaming job {self.job} ({error}): wait until other job runs end, or "
                "raise the account's quotas of Glue job runs and DPUs"
            ) from error

    def end_cause(self, row: StreamRow) -> str:
        runs = self.glue.get_job_runs(JobName=self.job, MaxResults=MAX_LISTED_RUNS)["JobRuns"]
        run = next((run for run in runs if run["Id"] == row.started_run), None)
        return NO_REASON if run is None else end_reason(run["JobRunState"], run.get("ErrorMessage"))

    def live(self) -> list[str]:
        return [run["Id"] for run in live_runs(self.glue, self.job, MAX_LISTED_RUNS)]

    def end(self, runs: Sequence[str]) -> None:
        errors = self.glue.batch_stop_job_run(JobName=self.job, JobRunIds=list(runs)).get("Errors")
        if errors and live_runs(self.glue, self.job, MAX_LISTED_RUNS, LIVE_STATES - {STOPPING}):
            raise TransientError(f"Glue did not stop a run of the job {self.job} ({errors[0]['ErrorDetail']})")


def live_runs(glue: GlueClient, job: str, newest: int, states: Collection[str] = LIVE_STATES) -> list[JobRunTypeDef]:
    """The runs in ``states`` among the ``newest`` runs of a Glue job: one request. Raises botocore's errors."""
    return [run for run in glue.get_job_runs(JobName=job, MaxResults=newest)["JobRuns"] if run["JobRunState"] in states]


def dpus_of(run: Mapping[str, Any]) -> float:
    return float(run.get("MaxCapacity") or DPUS[run["WorkerType"]] * run["NumberOfWorkers"])


def _dpu_milliseconds(run: Mapping[str, Any]) -> int:
    """``DPUSeconds``, which Glue reports for Flex and auto scaling, so for all our jobs; else all workers."""
    if "DPUSeconds" in run:
        return round(float(run["DPUSeconds"]) * 1000)
    return round(dpus_of(run) * int(run["ExecutionTime"]) * 1000)
