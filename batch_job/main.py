"""The batch lane's Glue job: load the run document, convert its manifests, report."""

from __future__ import annotations

import functools
import json
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3

from lake.errors import HybridRouterError, InvalidInputError
from lake.job_runs import run_is_terminal
from transform.convert import convert
from transform.job_arguments import open_services, parse_arguments, read_uri
from transform.outcome import HELD, format_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from transform.services import Services


def run(
    arguments: Mapping[str, str],
    *,
    spark: SparkSession,
    services: Services,
    clock: Callable[[], datetime],
    run_is_terminal: Callable[[str], bool],
    log: Callable[[str], None],
) -> int:
    """Convert the manifests of the run document that ``--run`` names.

    Returns the exit code: 0 when every manifest is terminal or HELD by another run (the state machine asks again),
    1 otherwise.
    """
    uri = arguments.get("run")
    if not uri:
        raise InvalidInputError("the job argument --run is missing: give the s3:// address of a run document")
    document = json.loads(read_uri(services.s3, uri))
    manifests = [str(manifest) for manifest in document["manifests"]]
    owner = arguments.get("JOB_RUN_ID") or f"manual-{clock():%Y%m%dT%H%M%S%f}"
    log(
        f"run {uri}: {len(manifests)} manifests, {document.get('files', '?')} files, {document.get('bytes', '?')} bytes"
    )
    started = time.monotonic()
    outcomes = convert(
        manifests, spark=spark, services=services, run=owner, clock=clock, run_is_terminal=run_is_terminal
    )
    for outcome in outcomes:
        log(format_outcome(outcome))
    open_ones = [outcome for outcome in outcomes if not outcome.terminal and outcome.state != HELD]
    rows = sum(outcome.rows for outcome in outcomes)
    rejects = sum(outcome.rejects for outcome in outcomes)
    log(f"{rows} rows, {rejects} rejected lines in {time.monotonic() - started:.1f} s; {len(open_ones)} unfinished")
    return 1 if open_ones else 0


def main(argv: list[str]) -> int:
    """Parse, connect, open a Spark session, run."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    log = functools.partial(print, flush=True)
    arguments = parse_arguments(argv)
    try:
        services = open_services(arguments)
        glue = boto3.Session().client("glue")
        jobs = (services.resources.batch_job, services.resources.stream_job)
        return run(
            arguments,
            spark=SparkSession.builder.appName("hybrid-router-batch").getOrCreate(),
            services=services,
            clock=lambda: datetime.now(UTC),
            run_is_terminal=lambda owner: run_is_terminal(glue, jobs, owner),
            log=log,
        )
    except HybridRouterError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    # Glue takes any SystemExit, even with code 0, for a failure.
    if code := main(sys.argv[1:]):
        sys.exit(code)
