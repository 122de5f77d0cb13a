"""What the main modules of both jobs share: from arguments to a context, from an error to an exit code."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lake.errors import HybridRouterError
from lake.job_runs import emr_run_id, run_is_terminal
from lake.printable import printable
from transform.clients import emr_client, glue_client
from transform.context import ConversionContext
from transform.job_arguments import open_services, parse_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EMR_APPLICATION, EMR_JOB_RUN = "SERVERLESS_EMR_VIRTUAL_CLUSTER_ID", "SERVERLESS_EMR_JOB_ID"
"""Environment variables of a driver on EMR Serverless. AWS's pages do not list them; AWS's own code for job metrics and
OpenSearch's Spark extension read them. Without them a run is not known by its id, and its lease alone decides."""
S3A_REGION = "spark.hadoop.fs.s3a.endpoint.region"
"""Spark's own S3 client, which reads the inbox and writes the checkpoint of the stream lane."""


def run_job(argv: Sequence[str], app_name: str, run: Callable[[ConversionContext, Mapping[str, str]], int]) -> int:
    """Parse the arguments, connect, open a Spark session and call ``run``; the exit code.

    A deliberate error (``HybridRouterError``) is one line on stderr and the exit code 1. Any other exception
    propagates, so that the log shows its traceback.
    """
    arguments = parse_arguments(argv)
    try:
        return run(_open_context(arguments, app_name), arguments)
    except HybridRouterError as error:
        print(printable(f"{type(error).__name__}: {error}"), file=sys.stderr, flush=True)
        return 1


def print_line(message: str) -> None:
    """Print the message as one line of visible characters: data cannot begin a line that an alarm's filter would find.

    The driver's stdout is the run's log; without a flush its last lines are lost when the driver is killed.
    """
    print(printable(" ".join(message.splitlines())), flush=True)


def run_id(arguments: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The id by which this run holds its leases.

    Glue passes its own as an argument, EMR Serverless in the environment; a run that a person starts has none.
    """
    if own := arguments.get("JOB_RUN_ID"):
        return own
    application, job_run = environment.get(EMR_APPLICATION), environment.get(EMR_JOB_RUN)
    if application and job_run:
        return emr_run_id(application, job_run)
    return f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"


def _open_context(arguments: Mapping[str, str], app_name: str) -> ConversionContext:
    services = open_services(arguments)
    # Imported and started only after the arguments are known to be valid: a wrong one is reported at once.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    glue = glue_client(services.region)
    emr = emr_client(services.region) if services.settings.batch.uses_emr else None
    jobs = (services.resources.batch_job, services.resources.stream_job)
    return ConversionContext(
        spark=SparkSession.builder.appName(app_name).config(S3A_REGION, services.region).getOrCreate(),
        services=services,
        run=run_id(arguments, os.environ),
        clock=lambda: datetime.now(UTC),
        run_is_terminal=lambda run: run_is_terminal(glue, jobs, run, emr),
        log=print_line,
    )
