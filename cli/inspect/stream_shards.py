"""The shards of the stream lane as the command line sees them: their runs and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.job_runs import live_emr_runs, live_glue_runs
from router.stream.engines import MAX_LISTED_RUNS

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from lake.ledger import StreamRow


@dataclass(frozen=True, slots=True)
class ShardState:
    """One shard now."""

    shard: str
    runs: tuple[str, ...]
    """Ids of the runs of its streaming job that are alive."""
    row: StreamRow


def read_shards(stack: DeployedStack) -> list[ShardState]:
    """Every shard of the stack, the first one first; raises botocore's errors."""
    return [
        ShardState(shard, tuple(_live_runs(stack, shard)), stack.ledger.stream.of(shard).get())
        for shard in stack.outputs.shards.names
    ]


def _live_runs(stack: DeployedStack, shard: str) -> list[str]:
    job, application = stack.resources.stream_job_of(shard), stack.outputs.stream_application
    if application:
        return live_emr_runs(stack.emr, application, job)
    return live_glue_runs(stack.glue, job, MAX_LISTED_RUNS)
