"""``hybrid-router simulate``: what a day of files would look like, without any cloud."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import typer

from cli.cost.cost import parse_day
from cli.deployed_stack import DeployedStack
from cli.terminal import print_table
from lake.errors import InvalidInputError
from lake.settings import Settings
from sizing.day import simulate, simulate_profile
from sizing.options import night_start
from sizing.profile import GzipShare, load_profile, profile_of_sizes
from sizing.recorded import RecordedArrivals, read_recorded
from sizing.result import Simulation, Table, assumptions_table, notes, options_table


@dataclass(frozen=True, slots=True)
class Source:
    """Where the files of a day come from: exactly one of these."""

    profile: Path | None = None
    sizes: tuple[str | None, str | None] | None = None
    """Size of a day's files together, and of each of them."""
    ledger: Callable[[], DeployedStack] | None = None
    """Connects to the stack whose ledger it is."""


def print_simulation(source: Source, settings: Settings, day: str | None, *, as_json: bool) -> None:
    """Print what the files of the source come to, as tables or as a JSON document.

    ``day`` is the local date on which the night of the ledger's day begins, ``YYYY-MM-DD``.
    """
    if sum(item is not None for item in (source.profile, source.sizes, source.ledger)) != 1:
        raise typer.BadParameter("pass one of a profile, --a-day with --files-of, and --from-ledger")
    if source.profile is not None:
        found = simulate_profile(load_profile(source.profile), settings, _progress)
    elif source.sizes is not None:
        a_day, files_of = source.sizes
        if not a_day or not files_of:
            raise typer.BadParameter("pass both --a-day and --files-of")
        found = simulate_profile(profile_of_sizes(a_day, files_of), settings, _progress)
    elif source.ledger is not None:
        found = _simulate_ledger(source.ledger, settings, _parse_day(day))
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
        return
    _print(options_table(found, settings.time_zone))
    for note in notes(found, settings.time_zone):
        typer.echo(note)
    _print(assumptions_table(found))


def _print(table: Table) -> None:
    print_table(table.title, table.names, table.numbers, table.rows)


def _simulate_ledger(connect: Callable[[], DeployedStack], settings: Settings, day: date) -> Simulation:
    """The speed of each dataset is what the ledger has measured of it, as for the plan of a night."""
    night, stack = night_start(settings, day), connect()
    buckets = (stack.resources.control_bucket, stack.resources.input_bucket)
    arrivals = RecordedArrivals(read_recorded(stack.s3, *buckets, night, _progress), settings, night)
    return simulate(arrivals, settings, GzipShare().ratio, _progress, stack.ledger.datasets.speeds())


def _parse_day(day: str | None) -> date:
    if day is None:
        raise InvalidInputError("--date is missing: pass the local date of the night, such as 2026-11-18")
    return parse_day("--date", day)


def _progress(text: str) -> None:
    typer.echo(text, err=True)
