"""The streaming jobs on each engine: which runs are alive, and how one is started and ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError

from lake.errors import InvalidInputError, TransientError
from lake.faults import error_code
from lake.job_runs import STREAMING, UNKNOWN_EMR_RUN_CODES, live_emr_runs, live_glue_runs, split_emr_run_id
from lake.printable import printable
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.job_runs import EmrServerlessClient
    from lake.ledger import StreamRow
    from lake.stream_launch import StreamLaunch
    from router.services import Services

MAX_LISTED_RUNS = 20
"""One run of a job is alive at a time: older ones have ended."""
START_SETTLES = timedelta(minutes=1)
"""Assumed: after this time a run that was started is in the list of EMR Serverless, or the start was given up."""
NOT_NOW = frozenset({"ConflictException", "ValidationException"})
"""Answers to StartJobRun after which it is tried again: the client token is that of another request, which a function
of the deployment before has sent; or the application is just stopping (assumed: its pages name no error for that). A
request that is not valid has the second one too: it stays, and the watch of the stream notifies people."""
NO_REASON = "its reason is not known"
MAX_REASON_CHARACTERS = 500
IMMEDIATELY = 0
"""Grace period of a cancelled run in seconds: the run was asked to end before (Amazon EMR Serverless User Guide, "EMR
Serverless job run cancellation with grace period"; the default of a streaming run is 120)."""


class StreamEngine(Protocol):
    """The streaming jobs of all shards on one engine. Each method raises botocore's errors."""

    def start(self, shard: str) -> str | None:
        """Start a run of a shard and return its id; None if one exists already.

        Raises ``TransientError``: it cannot start now.
        """

    def why_ended(self, shard: str, row: StreamRow) -> str:
        """The reason of the last run that was started, in the words of the service that has run it."""

    def live_runs(self, shard: str) -> list[str]:
        """The ids, by which they hold leases, of the runs of a shard that have not ended."""

    def end(self, shard: str, runs: Sequence[str]) -> None:
        """End these runs at once."""


def stream_engine(services: Services) -> StreamEngine:
    """The engine that ``stream.engine`` names; raises ``InvalidInputError``: the function was not deployed for it."""
    if not services.settings.stream.on_emr:
        return GlueStreamRuns(services)
    if services.emr is None or services.stream_launch is None:
        raise InvalidInputError(
            "this function does not know how a streaming run is started on EMR Serverless: deploy the stack again, it "
            "sets STREAM_LAUNCH"
        )
    return EmrStreamRuns(services, services.emr, services.stream_launch)


@dataclass(frozen=True, slots=True)
class GlueStreamRuns:
    """A Glue job for each shard."""

    services: Services

    def start(self, shard: str) -> str | None:
        """The job's ``MaxConcurrentRuns`` is 1: Glue refuses a second run as a concurrent one. A full account is
        refused by either error (AWS Glue API, ``StartJobRun``: "too many jobs are being run concurrently", "a resource
        numerical limit was exceeded"), so only a live run proves that one exists.
        """
        job, exceptions = self.services.resources.stream_job_of(shard), self.services.glue.exceptions
        try:
            return self.services.glue.start_job_run(JobName=job)["JobRunId"]
        except (exceptions.ConcurrentRunsExceededException, exceptions.ResourceNumberLimitExceededException) as error:
            if isinstance(error, exceptions.ConcurrentRunsExceededException) and self.live_runs(shard):
                return None
            raise TransientError(
                f"Glue has no room to start the streaming job {job} ({error}): wait until other job runs end, or raise "
                "the account's quotas of Glue job runs and DPUs"
            ) from error

    def why_ended(self, shard: str, row: StreamRow) -> str:
        """``ErrorMessage`` of the run, from the list of the newest ones."""
        job = self.services.resources.stream_job_of(shard)
        runs = self.services.glue.get_job_runs(JobName=job, MaxResults=MAX_LISTED_RUNS)["JobRuns"]
        run = next((run for run in runs if run["Id"] == row.started_run), None)
        return NO_REASON if run is None else _reason(run["JobRunState"], run.get("ErrorMessage"))

    def live_runs(self, shard: str) -> list[str]:
        """Of the newest runs, in one request."""
        return live_glue_runs(self.services.glue, self.services.resources.stream_job_of(shard), MAX_LISTED_RUNS)

    def end(self, shard: str, runs: Sequence[str]) -> None:
        """One request for all."""
        job = self.services.resources.stream_job_of(shard)
        self.services.glue.batch_stop_job_run(JobName=job, JobRunIds=list(runs))


@dataclass(frozen=True, slots=True)
class EmrStreamRuns:
    """One application of EMR Serverless for all shards, whose runs have the names of their jobs."""

    services: Services
    emr: EmrServerlessClient
    launch: StreamLaunch

    def start(self, shard: str) -> str | None:
        """EMR Serverless would run a second one beside the first, or let it wait. A live run keeps it from starting,
        and the client token in the row of the shard lets callers that start at the same time start one run.
        """
        if self.live_runs(shard):
            return None
        job = self.services.resources.stream_job_of(shard)
        token = self.services.ledger.stream.of(shard).begin_start(self.services.clock(), START_SETTLES)
        try:
            started = self.emr.start_job_run(**self.launch.request(shard, job, token))
        except ClientError as error:
            if error_code(error) not in NOT_NOW:
                raise
            if self.live_runs(shard):
                return None
            raise TransientError(
                f"EMR Serverless cannot start the streaming job {job} now ({error}): it is tried again; if that does "
                "not help, deploy the stack again"
            ) from error
        logger.info("streaming run on EMR Serverless", shard=shard, job_run=started["jobRunId"])
        return str(started["jobRunId"])

    def why_ended(self, shard: str, row: StreamRow) -> str:  # noqa: ARG002
        """``stateDetails`` of the run, from the list of those that were created since."""
        request: dict[str, Any] = {"applicationId": self.launch.application, "mode": STREAMING}
        if row.started_at is not None:
            request["createdAtAfter"] = datetime.fromisoformat(row.started_at) - START_SETTLES
        runs = self.emr.list_job_runs(**request)["jobRuns"]
        run = next((run for run in runs if run["id"] == row.started_run), None)
        return NO_REASON if run is None else _reason(run["state"], run.get("stateDetails"))

    def live_runs(self, shard: str) -> list[str]:
        """Those with the name of the shard's job."""
        return live_emr_runs(self.emr, self.launch.application, self.services.resources.stream_job_of(shard))

    def end(self, shard: str, runs: Sequence[str]) -> None:
        """One request for each; a run that has ended meanwhile is left as it is."""
        for run in runs:
            application, job_run = split_emr_run_id(run)
            try:
                self.emr.cancel_job_run(
                    applicationId=application, jobRunId=job_run, shutdownGracePeriodInSeconds=IMMEDIATELY
                )
            except ClientError as error:
                if error_code(error) not in UNKNOWN_EMR_RUN_CODES or run in self.live_runs(shard):
                    raise


def _reason(state: str, text: str | None) -> str:
    return f"{state}: {printable(text)[:MAX_REASON_CHARACTERS]}" if text else f"{state}, without a reason"
