"""``hybrid-router simulate``: what a day of files would look like, without any cloud."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import typer

from cli.deployed_stack import DeployedStack
from cli.tables import print_table
from lake.counted import format_count
from lake.errors import InvalidInputError
from lake.settings import Settings
from sizing.day import simulate, simulate_profile
from sizing.listing import ListedArrivals, read_csv
from sizing.profile import GzipShare, load_profile, profile_of_sizes
from sizing.recorded import read_recorded
from sizing.report import Table, assumptions_table, notes, options_table
from sizing.result import Simulation
from sizing.schedule import night_start


@dataclass(frozen=True, slots=True)
class Source:
    """Where the files of a day come from: exactly one of these."""

    profile: Path | None = None
    sizes: tuple[str | None, str | None] | None = None
    """Size of a day's files together, and of each of them."""
    csv: Path | None = None
    ledger: Callable[[], DeployedStack] | None = None
    """Connects to the stack whose ledger it is."""


def print_simulation(source: Source, settings: Settings, day: str | None, *, as_json: bool) -> None:
    """Print what the files of the source come to, as tables or as a JSON document.

    ``day`` is the local date on which the night of a listing or of the ledger begins, ``YYYY-MM-DD``.
    """
    if sum(item is not None for item in (source.profile, source.sizes, source.csv, source.ledger)) != 1:
        raise typer.BadParameter("pass one of a profile, --a-day with --files-of, --from-csv and --from-ledger")
    if source.profile is not None:
        found = simulate_profile(load_profile(source.profile), settings, _progress)
    elif source.sizes is not None:
        a_day, files_of = source.sizes
        if not a_day or not files_of:
            raise typer.BadParameter("pass both --a-day and --files-of")
        found = simulate_profile(profile_of_sizes(a_day, files_of), settings, _progress)
    else:
        found = _simulate_listing(source, settings, _parse_day(day))
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
        return
    _print(options_table(found, settings.time_zone))
    for note in notes(found, settings.time_zone):
        typer.echo(note)
    _print(assumptions_table(found))


def _print(table: Table) -> None:
    print_table(table.title, table.names, table.numbers, table.rows)


def _simulate_listing(source: Source, settings: Settings, day: date) -> Simulation:
    """A listing, or what the ledger has recorded, at the speeds that the ledger has measured of each dataset."""
    night, speeds = night_start(settings, day), None
    if source.csv is not None:
        files, name = read_csv(source.csv), str(source.csv)
    else:
        assert source.ledger is not None
        stack = source.ledger()
        buckets = (stack.resources.control_bucket, stack.resources.input_bucket)
        files, name = read_recorded(stack.s3, *buckets, night, _progress), "the ledger"
        speeds = stack.ledger.datasets.speeds()
    arrivals = ListedArrivals(files, name, settings, night)
    if arrivals.left_out:
        left_out = format_count(arrivals.left_out, "file of other days is", "files of other days are")
        _progress(f"{left_out} left out; --date chooses the night")
    return simulate(arrivals, settings, GzipShare().ratio, _progress, speeds)


def _parse_day(day: str | None) -> date:
    if day is None:
        raise InvalidInputError("--date is missing: pass the local date of the night, such as 2026-11-18")
    try:
        return date.fromisoformat(day)
    except ValueError as error:
        raise InvalidInputError(f"--date {day} is not a date: pass one such as 2026-11-18") from error


def _progress(text: str) -> None:
    typer.echo(text, err=True)
