"""Whether a Glue job run has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mypy_boto3_glue import GlueClient

TERMINAL_STATES = frozenset({"STOPPED", "SUCCEEDED", "FAILED", "TIMEOUT", "ERROR", "EXPIRED"})
UNKNOWN_RUN_CODES = frozenset({"EntityNotFoundException", "InvalidInputException"})


def run_is_terminal(glue: GlueClient, jobs: Iterable[str], run: str) -> bool:
    """Whether the job run ``run`` of one of ``jobs`` has ended.

    False for a run that none of the jobs knows: then its lease alone decides. Raises botocore's errors.
    """
    for job in jobs:
        try:
            state = glue.get_job_run(JobName=job, RunId=run)["JobRun"]["JobRunState"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in UNKNOWN_RUN_CODES:
                raise
        else:
            return state in TERMINAL_STATES
    return False
