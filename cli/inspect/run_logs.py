"""Where the log of a job run is: in CloudWatch, or in a file of the local cloud."""

from __future__ import annotations

from pathlib import Path

from cli.deployed_stack import DeployedStack
from lake.engines import engine_of_run
from lake.manifest import Lane

KEPT = "30d"
"""The log groups keep events for a month."""


def log_stream(stack: DeployedStack, job_run: str) -> tuple[str, str]:
    """Log group and log stream of what the driver of a job run prints."""
    return engine_of_run(job_run).log_stream(stack.name, job_run, stack.outputs.stream_application)


def log_of_run(stack: DeployedStack, job_run: str, lane: str) -> str | None:
    """The command that prints the log of a job run; in the local cloud the path of its file.

    ``job_run`` is the id by which it holds its leases, ``lane`` that of its manifests. None: a person has started it,
    and its output is where that person has it.
    """
    if job_run.startswith("manual-"):
        return None
    if stack.local:
        return _local_log(stack, lane, f"{job_run.rpartition(':')[2]}.log") if stack.local_logs else None
    group, stream = log_stream(stack, job_run)
    return f"{stack.aws} logs tail {group} --log-stream-names {stream} --since {KEPT}"


def _local_log(stack: DeployedStack, lane: str, name: str) -> str:
    """The file of the job that has it: a run of any shard can have taken a manifest."""
    resources, shards = stack.resources, stack.outputs.shards.names
    jobs = list(map(resources.stream_job_of, shards)) if lane == Lane.STREAM else [resources.batch_job]
    paths = [Path(f"{stack.local_logs}/{job}/{name}") for job in jobs]
    return str(next((path for path in paths if path.exists()), paths[0]))
