"""The ids by which job runs hold leases, and whether a job run has ended: asked of the service that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotocoreConnectionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mypy_boto3_glue import GlueClient

TERMINAL_STATES = frozenset({"STOPPED", "SUCCEEDED", "FAILED", "TIMEOUT", "ERROR", "EXPIRED"})
"""Of Glue."""
LIVE_STATES = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})
"""Of Glue (AWS Glue Web API Reference, JobRunState)."""
UNKNOWN_RUN_CODES = frozenset({"EntityNotFoundException", "InvalidInputException"})
SUCCEEDED = "SUCCEEDED"
"""Of Glue: the only end that is not a failure or a stop."""
EMR_SUCCESS = "SUCCESS"
"""The same end, of EMR Serverless."""
TERMINAL_EMR_STATES = frozenset({EMR_SUCCESS, "FAILED", "CANCELLED"})
"""Of EMR Serverless (API reference, JobRun)."""
LIVE_EMR_STATES = ("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING")
"""The other ones."""
UNKNOWN_EMR_RUN_CODES = frozenset({"ResourceNotFoundException", "ValidationException"})
STREAMING = "STREAMING"
"""The mode of a run on EMR Serverless that has no end of its own (the same, StartJobRun)."""
EMR_PREFIX = "emr-serverless:"
"""Begins the id of a run on EMR Serverless. An id without it is Glue's own."""


class EmrServerlessClient(Protocol):
    """What is asked of EMR Serverless; boto3's client has it."""

    def get_job_run(self, **_request: str) -> Mapping[str, Any]:
        """The job run, as ``jobRun``, for ``applicationId`` and ``jobRunId``; raises botocore's errors."""

    def list_job_runs(self, **_request: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """A page of the job runs of ``applicationId``, as ``jobRuns``; raises botocore's errors."""

    def start_job_run(self, **_request: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """Start a job run, whose id is ``jobRunId``; raises botocore's errors."""

    def cancel_job_run(self, **_request: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """Cancel the job run of ``applicationId`` and ``jobRunId``; raises botocore's errors."""


def emr_run_id(application: str, job_run: str) -> str:
    """The id by which a run on EMR Serverless holds its leases: it names all that ``run_is_terminal`` asks for."""
    return f"{EMR_PREFIX}{application}:{job_run}"


def split_emr_run_id(run: str) -> tuple[str, str]:
    """The application, and the id that EMR Serverless has given the run: the inverse of ``emr_run_id``."""
    application, _, job_run = run.removeprefix(EMR_PREFIX).partition(":")
    return application, job_run


def live_glue_runs(glue: GlueClient, job: str, newest: int) -> list[str]:
    """Ids of the runs of a Glue job that have not ended, of its newest runs: one request; raises botocore's errors."""
    runs = glue.get_job_runs(JobName=job, MaxResults=newest)["JobRuns"]
    return [run["Id"] for run in runs if run["JobRunState"] in LIVE_STATES]


def live_emr_runs(emr: EmrServerlessClient, application: str, name: str) -> list[str]:
    """The ids, as ``emr_run_id``, of the streaming runs of this name that have not ended; raises botocore's errors."""
    found: list[str] = []
    request: dict[str, Any] = {"applicationId": application, "mode": STREAMING, "states": list(LIVE_EMR_STATES)}
    while True:
        page = emr.list_job_runs(**request)
        found += [emr_run_id(application, run["id"]) for run in page["jobRuns"] if run.get("name") == name]
        if not page.get("nextToken"):
            return found
        request["nextToken"] = page["nextToken"]


def run_is_terminal(glue: GlueClient, jobs: Iterable[str], run: str, emr: EmrServerlessClient | None = None) -> bool:
    """Whether the run ``run``, one of the Glue jobs ``jobs`` or one on EMR Serverless, has ended.

    False for a run that its service does not know, and for one on EMR Serverless without ``emr`` or without a way to
    that service, which a job's machines may lack: then its lease alone decides. Raises botocore's errors.
    """
    if run.startswith(EMR_PREFIX):
        return emr is not None and _emr_run_is_terminal(emr, run)
    for job in jobs:
        try:
            state = glue.get_job_run(JobName=job, RunId=run)["JobRun"]["JobRunState"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in UNKNOWN_RUN_CODES:
                raise
        else:
            return state in TERMINAL_STATES
    return False


def _emr_run_is_terminal(emr: EmrServerlessClient, run: str) -> bool:
    application, job_run = split_emr_run_id(run)
    try:
        state = emr.get_job_run(applicationId=application, jobRunId=job_run)["jobRun"]["state"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in UNKNOWN_EMR_RUN_CODES:
            raise
        return False
    except (BotocoreConnectionError, HTTPClientError):
        return False
    return state in TERMINAL_EMR_STATES
