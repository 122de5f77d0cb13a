"""``hybrid-router verify``: proves hours of a dataset from the input alone."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.commands import FROM, TO, Json
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode, NotReachableError
from cli.terminal import print_progress
from lake.documents import format_json
from lake.errors import HybridRouterError, InvalidInputError
from lake.settings import Settings
from lake.texts import printable
from router.requests.selection import parse_selection
from router.services import Services
from verify.hours import Effort, HoursCheck
from verify.report import HourOutcome, HourReport
from verify.stack import Hours, Stack


def verify_command(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Option(help="Dataset to prove.")],
    first: Annotated[str, FROM],
    last: Annotated[str, TO],
    *,
    as_json: Json = False,
) -> int:
    """Prove hours from the input files; exit code 0: proven, 1: different, 2: invalid use, 3: no proof possible."""
    reports: list[HourReport] = []
    try:
        settings = stack.settings()
        hours = _hours(stack, settings, {"dataset": dataset, "from": first, "to": last})
        for report in HoursCheck(_readable(stack, settings, hours), hours, Effort(), print_progress).run():
            found = (replace(item, problem=stack.runnable(item.problem)) for item in report.differences)
            report.differences, report.unproven = list(found), [stack.runnable(text) for text in report.unproven]
            reports.append(report)
            if not as_json:
                typer.echo(str(report))
                for text in (*map(str, report.differences), *report.unproven):
                    typer.echo(f"  {printable(text)}")
    except InvalidInputError:
        raise
    except HybridRouterError as error:
        raise NotReachableError(f"verify could not read everything: {error}") from error
    if as_json:
        typer.echo(format_json({"dataset": dataset, "hours": [item.to_json() for item in reports]}))
    outcomes = {report.outcome for report in reports}
    if HourOutcome.DIFFERS in outcomes:
        return ExitCode.NEGATIVE
    is_proven = HourOutcome.PROVEN in outcomes and HourOutcome.UNPROVEN not in outcomes
    return ExitCode.OK if is_proven else ExitCode.NOT_REACHABLE


def _hours(stack: DeployedStack, settings: Settings, options: dict[str, str]) -> Hours:
    # A dataset may be known from the settings or the input bucket only, without a file in the ledger.
    services = Services(settings, stack.resources, stack.ledger, stack.s3, stack.glue, lambda: datetime.now(UTC))
    selection = parse_selection(options, services)
    assert selection.dataset is not None
    assert selection.first is not None
    assert selection.last is not None
    settings.ledger.check_kept(selection.first, stack.ledger.arrivals.expiries(), services.clock())
    current = services.clock().replace(tzinfo=None).isoformat(timespec="hours")
    # An hour that has not begun has no file, which proves nothing.
    if selection.first > current:
        raise InvalidInputError(f"the hour {selection.first} has not begun: pass an earlier one as --from")
    return Hours(selection.dataset, selection.first, min(selection.last, current))


def _readable(stack: DeployedStack, settings: Settings, hours: Hours) -> Stack:
    found = Stack.of(stack.s3, stack.ledger, stack.resources, settings, hours.dataset, lambda: datetime.now(UTC))
    if not found.has_table:
        return found
    from cli.inspect.iceberg_table import IcebergTable

    return replace(found, table=IcebergTable(stack.s3, stack.glue, stack.resources.tables_database, hours))
