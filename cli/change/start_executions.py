"""``hybrid-router overnight`` and ``hybrid-router backfill``: executions that a person starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from cli.change.follow_execution import follow_execution, print_end, print_started
from cli.cost.plan import print_plan
from cli.deployed_stack import DeployedStack
from cli.exit_codes import ExitCode
from cli.known_dataset import check_dataset_is_known
from lake.texts import format_count, format_size
from router.requests.selection import parse_hours


def run_overnight(stack: DeployedStack, options: Mapping[str, Any], *, dry_run: bool, wait: bool, as_json: bool) -> int:
    """Start ``overnight`` for a selection of the backlog; a dry run plans it. Returns the exit code.

    A wrong selection starts no execution: one that fails raises an alarm.
    """
    fields = {name: value for name, value in options.items() if value is not None}
    if dry_run:
        return print_plan(stack, fields, as_json=as_json)
    parse_hours(fields)
    if "dataset" in fields:
        check_dataset_is_known(stack, fields["dataset"])
    return _run(stack, stack.start_overnight(fields), wait=wait, as_json=as_json)


def run_backfill(stack: DeployedStack, options: Mapping[str, Any], *, dry_run: bool, wait: bool, as_json: bool) -> int:
    """Start ``backfill`` for hours of a dataset; a dry run lists and plans, and is always followed to its end.

    A wrong request starts no execution.
    """
    request = {**options, "dryRun": dry_run}
    stack.check_backfill(request)
    arn = stack.start_backfill(request)
    if not dry_run:
        return _run(stack, arn, wait=wait, as_json=as_json)
    code, body = follow_execution(stack, arn)
    output = body["output"]
    if as_json or code != ExitCode.FINE:
        print_end(body, as_json=as_json)
        return code
    search, plan = output["search"], output["plan"]
    typer.echo(
        f"dry run, nothing was done; found: {format_count(search['found'], 'file')}, of which {search['known']:,} have "
        f"an owner; to be converted: {format_count(search['recorded'], 'file')}, {format_size(search['bytes'])}"
    )
    typer.echo(f"queued in these hours already: {format_count(plan['files'], 'file')}, {format_size(plan['bytes'])}")
    return code


def _run(stack: DeployedStack, arn: str, *, wait: bool, as_json: bool) -> int:
    if not wait:
        print_started(arn, as_json=as_json)
        return ExitCode.FINE
    typer.echo(f"started: {arn}", err=True)
    try:
        code, body = follow_execution(stack, arn)
    except KeyboardInterrupt:
        typer.echo("the execution goes on", err=True)
        raise
    print_end(body, as_json=as_json)
    return code
