"""The stream lane's job: runs micro-batches over the inbox until it is stopped or idle."""

import sys
from collections.abc import Mapping
from dataclasses import replace

from lake.layout import inbox
from lake.shards import FIRST_SHARD, SHARD_ARGUMENT
from streaming_job.stream import InboxStream
from transform.job_main import run_job
from transform.task_model import ConversionContext


def run(context: ConversionContext, arguments: Mapping[str, str]) -> int:
    """Convert what the shard's inbox names until the run should end; returns the exit code."""
    shard = arguments.get(SHARD_ARGUMENT, FIRST_SHARD)
    # The run reads and writes the row of this shard wherever it uses the stream's row.
    context = replace(context, ledger=replace(context.ledger, stream=context.ledger.stream.of(shard)))
    context.ledger.stream.begin_run(context.run, context.clock())
    context.log(f"run {context.run}: waiting for pointers in s3://{context.resources.control_bucket}/{inbox(shard)}")
    InboxStream(context).run()
    return 0


def main(argv: list[str]) -> str | None:
    """Run the job with these command-line arguments; returns the message of its failure, or None."""
    return run_job(argv, "hybrid-router-stream", run)


if __name__ == "__main__":
    # Glue treats any SystemExit as a failure, even one with code 0.
    if (failure := main(sys.argv[1:])) is not None:
        sys.exit(failure)
