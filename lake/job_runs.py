"""Whether a Glue job run has ended, asked by whoever meets a lease of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mypy_boto3_glue import GlueClient

TERMINAL_STATES = frozenset({"STOPPED", "SUCCEEDED", "FAILED", "TIMEOUT", "ERROR", "EXPIRED"})
NOT_HERE = frozenset({"EntityNotFoundException", "InvalidInputException"})


def run_is_terminal(glue: GlueClient, jobs: Iterable[str], run: str) -> bool:
    """Whether ``run``, of one of ``jobs``, is terminal. Of a run that Glue does not know only its lease can tell."""
    for job in jobs:
        try:
            state = glue.get_job_run(JobName=job, RunId=run)["JobRun"]["JobRunState"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in NOT_HERE:
                raise
        else:
            return state in TERMINAL_STATES
    return False
