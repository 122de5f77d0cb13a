"""The shards of the stream lane as the command line sees them: their runs and their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cli.deployed_stack import DeployedStack
from lake.engines import ENGINES
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
    states = []
    for shard in stack.outputs.shards.names:
        row = stack.ledger.stream.of(shard).get()
        if row.start_failure:
            row = replace(row, start_failure=stack.runnable(row.start_failure))
        states.append(ShardState(shard, tuple(_live_runs(stack, shard)), row))
    return states


def _live_runs(stack: DeployedStack, shard: str) -> list[str]:
    engine, job = ENGINES[stack.outputs.stream_engine], stack.resources.stream_job_of(shard)
    return engine.live_stream_runs(stack.stream_client, job, stack.outputs.stream_application)
