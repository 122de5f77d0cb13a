"""The shards of the stream lane as the command line sees them: their runs and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.job_runs import live_glue_runs
from router.stream_engines import MAX_LISTED_RUNS

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
    found = []
    for shard in stack.outputs.shards.names:
        runs = live_glue_runs(stack.glue, stack.resources.stream_job_of(shard), MAX_LISTED_RUNS)
        found.append(ShardState(shard, tuple(runs), stack.ledger.stream.of(shard).get()))
    return found
