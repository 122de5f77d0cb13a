"""``hybrid-router night`` and ``nights``: what executions of ``overnight`` have come to."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import typer

from cli.change.follow_execution import FINE_VERDICTS
from cli.deployed_stack import DeployedStack
from cli.documents import (
    DamagedObject,
    ManifestNotDone,
    NightDataset,
    NightDocument,
    NightLine,
    NightsDocument,
    OmittedOfNight,
    UnreadableFile,
)
from cli.exit_codes import ExitCode, NotFoundError
from cli.inspect.executions import Execution, execution_arn, find_execution, list_executions
from cli.inspect.night_output import print_night_document, print_nights_document
from cli.inspect.night_progress import read_progress
from cli.inspect.night_runs import actual_of, read_runs
from cli.inspect.night_schedule import planned_night, read_schedule
from cli.progress import shown_when_slow
from lake.bills import MICRO
from lake.documents import find_document
from lake.errors import InvalidInputError
from lake.json_document import format_json
from lake.layout import plan_summary_key, verdict_key
from lake.texts import printable
from lake.time import iso_utc

LAST = "last"
NOT_FAILED = (*FINE_VERDICTS, "RUNNING", "OPEN")


def print_night(stack: DeployedStack, which: str, limit: int, *, as_json: bool) -> int:
    """Print one execution: ``last``, the newest that began on a date, or a name; the exit code.

    It is 1 when it has failed. ``limit`` is the maximum number of entries of each list.
    """
    now = datetime.now(UTC)
    with shown_when_slow("reading the execution ..."):
        zone = read_schedule(stack).zone
        execution = _find(stack, which, zone)
        document = None if execution is None else night_document(stack, execution, limit)
    if document is None:
        raise NotFoundError(_unknown(which))
    if as_json:
        typer.echo(format_json(document))
    else:
        print_night_document(document, zone, now)
    return ExitCode.FINE if document.outcome in NOT_FAILED else ExitCode.NOT_SO


def print_nights(stack: DeployedStack, limit: int, *, as_json: bool) -> int:
    """Print the newest executions, at most ``limit``, one in a line; the exit code."""
    with shown_when_slow("reading the executions ..."):
        zone = read_schedule(stack).zone
        found = islice((item for item in list_executions(stack) if item.is_night), limit)
        document = NightsDocument(stack.name, tuple(NightLine(**_fields(execution)) for execution in found))
    if as_json:
        typer.echo(format_json(document))
    else:
        print_nights_document(document, zone, datetime.now(UTC))
    return ExitCode.FINE


def night_document(stack: DeployedStack, execution: Execution, limit: int) -> NightDocument:
    """All that ``night`` shows."""
    bucket = stack.resources.control_bucket
    summary = find_document(stack.s3, bucket, plan_summary_key(execution.name))
    verdict = find_document(stack.s3, bucket, verdict_key(execution.name)) or {}
    runs = read_runs(stack, execution)
    names = ("datasets", "unreadableFiles", "notDone", "damaged")
    datasets, unreadable, not_done, damaged = (verdict.get(name, []) for name in names)
    lists = (datasets, unreadable, not_done, damaged, runs)
    return NightDocument(
        **_fields(execution),
        message=_runnable(stack, verdict.get("message")),
        error=_error(stack, execution),
        plan=planned_night(summary),
        max_concurrency=summary["maxConcurrency"] if summary else None,
        progress=None if verdict or summary is None else read_progress(stack, summary),
        actual=actual_of(runs, verdict),
        rejects_by_reason=verdict.get("rejectsByReason", {}),
        datasets=tuple(NightDataset(**item) for item in datasets[:limit]),
        unreadable_files=tuple(UnreadableFile(**item) for item in unreadable[:limit]),
        not_done=tuple(
            ManifestNotDone(**{**item, "reason": _runnable(stack, item.get("reason"))}) for item in not_done[:limit]
        ),
        damaged=tuple(DamagedObject(**item) for item in damaged[:limit]),
        job_runs=tuple(runs[:limit]),
        omitted=OmittedOfNight(*(max(len(entries) - limit, 0) for entries in lists)),
        verdict_document=f"s3://{bucket}/{verdict_key(execution.name)}" if verdict else None,
    )


def _runnable(stack: DeployedStack, text: str | None) -> str | None:
    return text and stack.runnable(text)


def _fields(execution: Execution) -> dict[str, Any]:
    """The fields of ``NightLine``."""
    verdict, plan = execution.verdict or {}, execution.plan or {}
    started, ended = execution.started_at, execution.ended_at
    planned = plan.get("micro_dollars")
    return {
        "execution": execution.name,
        "outcome": execution.outcome,
        "started_at": iso_utc(started) if started else None,
        "ended_at": iso_utc(ended) if ended else None,
        "minutes": round((ended - started).total_seconds() / 60, 1) if started and ended else None,
        "engine": plan.get("engine"),
        "files": plan.get("files"),
        "bytes": plan.get("bytes"),
        "manifests": plan.get("manifests"),
        "manifests_done": verdict.get("done"),
        "rows": verdict.get("rows"),
        "quarantined_lines": verdict.get("rejects"),
        "unreadable_files_total": verdict.get("failed_files"),
        "planned_dollars": None if planned is None else planned / MICRO,
    }


def _find(stack: DeployedStack, which: str, zone: ZoneInfo) -> Execution | None:
    if which == LAST:
        return next((item for item in list_executions(stack) if item.is_night), None)
    try:
        day = date.fromisoformat(which)
    except ValueError:
        if which[:2].isdigit() and len(which) == len("2026-11-20") and which.count("-") == 2:
            raise InvalidInputError(f"{which!r} is not a valid date: pass one such as 2026-11-20") from None
        return find_execution(stack, which)
    for execution in list_executions(stack):
        if execution.started_at is None or not execution.is_night:
            continue
        began = execution.started_at.astimezone(zone).date()
        if began <= day:
            return execution if began == day else None
    return None


def _unknown(which: str) -> str:
    if which == LAST:
        return (
            "overnight has not converted anything in the last 90 days: run 'hybrid-router status' to see when it will"
        )
    advice = "run 'hybrid-router nights' to see which there are"
    return f"no execution of overnight is named {printable(which)} or began on such a day: {advice}"


def _error(stack: DeployedStack, execution: Execution) -> str | None:
    """Why the execution ended without a verdict."""
    if execution.verdict is not None or execution.status not in ("FAILED", "TIMED_OUT", "ABORTED"):
        return None
    found = stack.sfn.describe_execution(executionArn=execution_arn(stack, execution.name))
    return ": ".join(found[name] for name in ("error", "cause") if found.get(name)) or execution.status
