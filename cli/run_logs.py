"""Where the log of a job run is: in CloudWatch, or in a file of the local cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.job_runs import EMR_PREFIX
from lake.manifest import Lane

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

KEPT = "30d"
"""The log groups keep events for a month."""


def log_of_run(stack: DeployedStack, job_run: str, lane: str) -> str | None:
    """The command that prints the log of a job run; in the local cloud the path of its file.

    ``job_run`` is the id by which it holds its leases, ``lane`` that of its manifests. None: a person has started it,
    and its output is where that person has it.
    """
    if job_run.startswith("manual-"):
        return None
    emr = job_run.startswith(EMR_PREFIX)
    application, _, service_id = job_run.removeprefix(EMR_PREFIX).partition(":")
    if stack.local:
        job = stack.resources.stream_job if lane == Lane.STREAM else stack.resources.batch_job
        return f"{stack.local_logs}/{job}/{service_id or application}.log" if stack.local_logs else None
    group, stream = f"/aws-glue/{stack.name}/output", job_run
    if emr:
        # Amazon EMR Serverless User Guide, "Logging for EMR Serverless with CloudWatch".
        group = f"/aws/emr-serverless/{stack.name}"
        stream = f"/applications/{application}/jobs/{service_id}/SPARK_DRIVER/stdout"
    return f"aws logs tail {group} --log-stream-names {stream} --since {KEPT}"
