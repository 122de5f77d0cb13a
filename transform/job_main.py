"""Shared parts of both jobs' main modules: arguments become a context, and errors the last line of the log."""

import json
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lake.canary import CANARY_ARGUMENT
from lake.documents import read_uri
from lake.engines import ENGINES, run_is_terminal
from lake.errors import HybridRouterError, InvalidInputError
from lake.ledger import Ledger
from lake.resource_names import ResourceNames
from lake.settings import Settings, load_settings, parse_settings
from lake.texts import printable, with_options
from lake.time import iso_utc
from transform.canary import run_canary
from transform.clients import dynamodb_client, engine_clients, s3_client
from transform.give_up import fault_of
from transform.outcome import ALARM
from transform.spark_job import failure_reason
from transform.task_model import ConversionContext

SCHEDULER_MODE = ("spark.scheduler.mode", "FAIR")
"""Pools share the cores; within the default pool, the oldest job still comes first (Spark, "Job Scheduling")."""
S3A_REGION = "spark.hadoop.fs.s3a.endpoint.region"
"""Region of Spark's own S3 client, which writes the event logs (``spark.ui_logs``)."""


class RunLog:
    """Prints the lines of a run's log, and keeps the last one, which says what happened and what to do."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, message: str) -> None:
        self.last = message
        print_line(message)


def run_job(
    argv: Sequence[str], app_name: str, run: Callable[[ConversionContext, Mapping[str, str]], int]
) -> str | None:
    """Parse the arguments, connect, open a Spark session and call ``run``, which returns an exit code.

    With a canary's argument it calls ``run_canary`` instead. Returns None if the job succeeded, otherwise the last line
    of its log, which the caller passes to ``sys.exit``: a text gives the exit code 1 and replaces ``SystemExit: 1`` in
    the engine's report of the run. Neither Glue's nor EMR Serverless's pages describe that. The stack trace of an
    unexpected error is on stderr before it.
    """
    arguments, log = parse_arguments(argv), RunLog()
    try:
        work = run_canary if CANARY_ARGUMENT in arguments else run
        if not work(_open_context(arguments, app_name, log), arguments):
            return None
    except HybridRouterError as error:
        log(f"{type(error).__name__}: {error}")
    except Exception as error:
        traceback.print_exc()
        text = str(error)
        what = f"{type(error).__name__}{f' ({failure_reason(text)})' if text else ''}"
        fault = fault_of(error)
        why = f" with {what}, its trace is in the same log: remove the cause" if fault is None else f": {fault}"
        log(f"the run ended{why}; nothing is lost, what was not published is converted again")
    return printable(" ".join(log.last.removeprefix(f"{ALARM} ").splitlines()))


def print_line(message: str) -> None:
    """Print the time and the message as one line of visible characters. Data cannot imitate a line that an alarm's
    filter finds, because no message begins with data.

    The driver's stdout is the run's log. Without the flush its last lines would be lost when the driver is killed.
    """
    print(f"{iso_utc(datetime.now(UTC))} {printable(' '.join(message.splitlines()))}", flush=True)


def run_id(arguments: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The id by which this run holds its leases; a run that a person starts without an engine gets a ``manual-`` id."""
    own = (engine.own_run(arguments, environment) for engine in ENGINES.values())
    return next(filter(None, own), f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")


def _open_context(arguments: Mapping[str, str], app_name: str, log: RunLog) -> ConversionContext:
    """Raises ``InvalidInputError`` if an argument is missing or ``--settings`` is not a valid S3 URI;
    ``InvalidSettingsError``, with key and value, if a setting is wrong.
    """
    resources, region = ResourceNames.read(arguments), _required(arguments, "region")
    s3, uri = s3_client(region), _required(arguments, "settings")
    is_stored = uri.startswith(("s3://", "s3a://"))
    settings = parse_settings(json.loads(read_uri(s3, uri))) if is_stored else load_settings(Path(uri))
    # Imported and started only after the arguments were validated, so that a wrong argument is reported at once.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    run = run_id(arguments, os.environ)
    # People find the run by this name in Spark's history server.
    builder = SparkSession.builder.appName(f"{app_name} {run}").config(S3A_REGION, region)
    session, options = builder.config(*SCHEDULER_MODE).getOrCreate(), f" --stage {settings.stage}"
    return ConversionContext(
        spark=session,
        s3=s3,
        ledger=Ledger.over(dynamodb_client(region), resources.ledger_table),
        resources=resources,
        settings=settings,
        region=region,
        run=run,
        clock=lambda: datetime.now(UTC),
        run_is_terminal=end_check(resources, settings, region),
        log=lambda message: log(with_options(message, options)),
    )


def end_check(resources: ResourceNames, settings: Settings, region: str) -> Callable[[str], bool]:
    """Returns a function that tells whether a job run of either lane, given by the id of its leases, has ended.

    The function queries the service of the run, and raises botocore's errors.
    """
    clients = engine_clients(region, settings.engines)
    # Only existing streaming jobs: the role may not query others.
    jobs = (resources.batch_job, *map(resources.stream_job_of, settings.glue_shards))
    return lambda run: run_is_terminal(clients, jobs, run)


def parse_arguments(argv: Iterable[str]) -> dict[str, str]:
    """Glue's ``--KEY value`` and ``--KEY=value`` arguments: keys without dashes, "" for a key without a value.

    A word that begins with two dashes is a key; any other word after a key is its value. Unknown keys are kept, because
    Glue adds its own; the last of equal keys wins. Why not argparse: docs/adr/tools.md.
    """
    arguments: dict[str, str] = {}
    awaiting_value: str | None = None
    for word in argv:
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            arguments[key] = value
            awaiting_value = None if equals else key
        elif awaiting_value is not None:
            arguments[awaiting_value] = word
            awaiting_value = None
    return arguments


def _required(arguments: Mapping[str, str], name: str) -> str:
    if value := arguments.get(name):
        return value
    raise InvalidInputError(f"the job argument --{name} is missing: deploy the stack again to set it")
