"""The stream lane's Glue job: micro-batches over the inbox until it is stopped or has nothing to do."""

from __future__ import annotations

import functools
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3

from lake.errors import HybridRouterError
from lake.job_runs import run_is_terminal
from streaming_job.micro_batch import Lane
from streaming_job.stream import InboxStream
from transform.job_arguments import open_services, parse_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


def run(arguments: Mapping[str, str], spark: SparkSession) -> int:
    """Work until the run should end; the exit code."""
    services = open_services(arguments)
    glue = boto3.Session().client("glue")
    jobs = (services.resources.stream_job, services.resources.batch_job)
    log = functools.partial(print, flush=True)
    owner = arguments.get("JOB_RUN_ID") or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    lane = Lane(
        spark,
        services,
        owner,
        lambda: datetime.now(UTC),
        lambda other: run_is_terminal(glue, jobs, other),
        time.sleep,
        log,
    )
    services.ledger.stream.record_heartbeat(owner, lane.clock())
    log(f"run {owner}: waiting for pointers in s3://{services.resources.control_bucket}/inbox/")
    InboxStream(lane).run()
    return 0


def main(argv: list[str]) -> int:
    """Parse, open a Spark session, run."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        return run(parse_arguments(argv), SparkSession.builder.appName("hybrid-router-stream").getOrCreate())
    except HybridRouterError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    # Glue takes any SystemExit, even with code 0, for a failure.
    if code := main(sys.argv[1:]):
        sys.exit(code)
