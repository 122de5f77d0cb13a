"""``hybrid-router overnight`` and ``backfill``: executions that a person starts, followed to their end."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from cli.commands import FROM, TO, Answer, DryRun, FirstHour, LastHour, NoWait, given
from cli.cost.cost import plan_command
from cli.deployed_stack import DeployedStack, known_dataset
from cli.errors import ExitCode, NotReachableError
from cli.inspect.executions import (
    execution_arn,
    format_progress,
    read_progress,
    read_runs,
    read_zone,
)
from lake.documents import find_document
from lake.layout import plan_summary_key
from lake.texts import format_count, format_dollars, format_duration, format_size, printable, read_instant
from router.requests.selection import parse_hours

POLL_SECONDS = 5.0
MAX_EVENTS = 100
"""Events of the history that are read at a time."""
MANIFESTS_PER_POLL = 1000
"""Progress is read at every poll; above this number of manifests, proportionally less often."""
FINE_VERDICTS = frozenset({"SUCCEEDED", "SUCCEEDED_WITH_QUARANTINE", "EMPTY"})


def follow_execution(
    stack: DeployedStack, arn: str, wait: Callable[[float], object] = time.sleep
) -> tuple[ExitCode, dict[str, Any]]:
    """Print each step of an execution on stderr until it ends; return its exit code, and what is known of its end.

    Steps are the states that it enters, without the states of a night's runs, which are separate executions. For an
    execution of ``overnight``, print each ended job run and the number of manifests that are done.
    """
    zone = read_zone(stack)
    typer.echo(f"times in {zone.key}", err=True)
    is_night = arn.startswith(execution_arn(stack, ""))
    name = arn.rsplit(":", 1)[-1]
    summary: dict[str, Any] | None = None
    shown: set[str] = set()

    def show(name: str, at: datetime, text: str) -> None:
        if name not in shown:
            shown.add(name)
            typer.echo(f"{at.astimezone(zone):%H:%M:%S}  {text}", err=True)

    for polls in count():
        execution = stack.sfn.describe_execution(executionArn=arn)
        is_running = execution["status"] == "RUNNING"
        for number, at, state in _steps(stack, arn):
            show(str(number), at, state)
        if is_night:
            summary = summary or find_document(stack.s3, stack.resources.control_bucket, plan_summary_key(name))
            is_due = is_running and summary is not None and not polls % (1 + summary["manifests"] // MANIFESTS_PER_POLL)
            if is_due or not is_running:
                for at, text in _ended_runs(stack, name):
                    show(text, at, text)
            if summary is not None and is_due:
                progress = format_progress(read_progress(stack, summary))
                show(progress, datetime.now(UTC), progress)
        if not is_running:
            break
        wait(POLL_SECONDS)
    output = json.loads(execution.get("output") or "{}")
    # For a backfill, the execution of overnight that it has started.
    verdict = output.get("overnight") or output
    body = {
        "execution": arn,
        "status": execution["status"],
        "verdict": verdict.get("verdict"),
        "message": stack.runnable(verdict.get("message") or execution.get("cause") or "") or None,
        "output": output,
    }
    is_fine = execution["status"] == "SUCCEEDED" and verdict.get("verdict", "SUCCEEDED") in FINE_VERDICTS
    return ExitCode.OK if is_fine else ExitCode.NEGATIVE, body


def _print_end(body: Mapping[str, Any]) -> None:
    message = f": {printable(body['message'])}" if body["message"] else ""
    typer.echo(f"{body['verdict'] or body['status']}{message}")


def _steps(stack: DeployedStack, arn: str) -> Iterator[tuple[int, datetime, str]]:
    """Return ids, times and names of the states that an execution has entered in its newest ``MAX_EVENTS`` events."""
    history = stack.sfn.get_execution_history(
        executionArn=arn, maxResults=MAX_EVENTS, reverseOrder=True, includeExecutionData=False
    )
    for event in sorted(history["events"], key=lambda event: event["id"]):
        if entered := event.get("stateEnteredEventDetails"):
            yield event["id"], event["timestamp"], entered["name"]


def _ended_runs(stack: DeployedStack, execution: str) -> Iterator[tuple[datetime, str]]:
    for run in read_runs(stack, execution):
        reason = f": {printable(run.reason)}" if run.reason else ""
        text = f"job run {run.job_run}, {run.engine}: {run.state} after {format_duration(run.minutes * 60)}{reason}"
        yield read_instant(run.ended_at), text


def overnight_command(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only what is queued of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    *,
    no_wait: NoWait = False,
    dry_run: DryRun = False,
) -> Answer:
    """Convert now what waits for the night, and wait for the verdict; exit code 1 unless all is done."""
    if dry_run:
        return plan_command(stack, dataset, first, last)
    fields = given({"dataset": dataset, "from": first, "to": last})
    # An invalid selection must start no execution: a failed execution raises an alarm.
    parse_hours(fields)
    if dataset is not None:
        known_dataset(stack, dataset)
    return _run(stack, stack.start("overnight", fields), wait=not no_wait)


def backfill_command(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Option(help="Dataset to list.")],
    first: Annotated[str, FROM],
    last: Annotated[str, TO],
    *,
    force: Annotated[bool, typer.Option("--force", help="Convert DONE and FAILED manifests again.")] = False,
    no_wait: NoWait = False,
    dry_run: DryRun = False,
) -> Answer:
    """Find older files without an owner, convert them, and wait for the verdict; exit code 1 unless all is done."""
    request = {"dataset": dataset, "from": first, "to": last, "force": force, "dryRun": dry_run}
    stack.invoke("backfill_function", {"action": "validate", "input": request})
    arn = stack.start("backfill", request)
    if not dry_run:
        return _run(stack, arn, wait=not no_wait)
    code, body = follow_execution(stack, arn)
    return Answer(body, lambda: _print_dry_run(body["output"]) if code is ExitCode.OK else _print_end(body), code)


def _print_dry_run(output: Mapping[str, Any]) -> None:
    search, plan = output["search"], output["plan"]
    typer.echo(
        f"dry run, nothing was done; found: {format_count(search['found'], 'file')}, of which {search['known']:,} have "
        f"an owner; to be converted: {format_count(search['recorded'], 'file')}, {format_size(search['bytes'])}"
    )
    if search["archived"]:
        typer.echo(f"archived, so restore them first: {search['archived']:,} of the files to be converted")
    files, size = plan["files"] - search["recorded"], plan["bytes"] - search["bytes"]
    typer.echo(f"queued in these hours already: {format_count(files, 'file')}, {format_size(size)}")
    forecast, runs = plan["forecast"], f"{format_count(plan['runs'], 'run')} on {plan['engine']}"
    price, other = (format_dollars(forecast[name]) for name in ("dollars", "other_dollars"))
    time = format_duration(60 * forecast["minutes"])
    typer.echo(f"with these: {runs}, {time}, {price}; requests, ledger and functions: {other}")
    if "reprocessed" in search:
        typer.echo(f"to be converted again in addition: {format_count(search['reprocessed'], 'manifest')}")


def _run(stack: DeployedStack, arn: str, *, wait: bool) -> Answer:
    if not wait:
        return Answer({"execution": arn}, lambda: typer.echo(f"started: {arn}"))
    typer.echo(f"started: {arn}", err=True)
    try:
        code, body = follow_execution(stack, arn)
    except KeyboardInterrupt:
        typer.echo("the execution continues", err=True)
        raise
    except (BotoCoreError, ClientError) as error:
        # The advice for an error of AWS is often to run the command again, which would start another execution.
        raise NotReachableError(
            f"{arn} continues, but could not be followed any longer ({error}): do not start it again, 'hybrid-router "
            "nights' shows its end"
        ) from error
    return Answer(body, lambda: _print_end(body), code)
