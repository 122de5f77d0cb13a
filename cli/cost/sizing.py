"""``hybrid-router simulate`` and ``calibrate``: what a day of files would look like, and what to assume of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import typer

from cli.cost.cost import parse_day
from cli.deployed_stack import DeployedStack
from cli.terminal import print_table
from lake.errors import InvalidInputError
from lake.settings import ConvertSettings, InputSettings, Settings
from router.estimate.waits import recent_waits
from sizing.arrivals import RecordedArrivals, read_recorded
from sizing.assumptions import Measured
from sizing.calibration import advise, measure, report_lines, toml_lines
from sizing.day import simulate, simulate_profile
from sizing.options import night_start
from sizing.profile import GzipShare, load_profile, profile_of_sizes
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
    """Speeds of datasets and waits of engines are what the ledger has measured, as for the plan of a night."""
    night, stack = night_start(settings, day), connect()
    buckets = (stack.resources.control_bucket, stack.resources.input_bucket)
    arrivals = RecordedArrivals(read_recorded(stack.s3, *buckets, night, _progress), settings, night)
    measured = Measured(stack.ledger.datasets.speeds(), recent_waits(stack.ledger, datetime.now(UTC)))
    return simulate(arrivals, settings, GzipShare().ratio, _progress, measured)


def _parse_day(day: str | None) -> date:
    if day is None:
        raise InvalidInputError("--date is missing: pass the local date of the night, such as 2026-11-18")
    return parse_day("--date", day)


def _progress(text: str) -> None:
    typer.echo(text, err=True)


MAX_GOAL_SECONDS = 3600.0
MIN_BYTES = 64 << 10
"""Minimum size of all files together: fewer bytes would be repeated for hours, and say nothing about real ones."""


def calibrate_files(paths: Sequence[Path], goal_seconds: float, cores: int, *, as_json: bool = False) -> None:
    """Convert the files, print figures, and what to set as lines of a settings file."""
    if not 0 < goal_seconds <= MAX_GOAL_SECONDS:
        raise InvalidInputError(
            f"--goal-seconds {goal_seconds:g} is not valid: pass a number above 0, at most {MAX_GOAL_SECONDS:g}"
        )
    if cores < 1:
        raise InvalidInputError(f"--cores {cores} is not valid: pass 1 or more")
    files = ndjson_files(paths)
    if (size := sum(path.stat().st_size for path in files)) < MIN_BYTES:
        raise InvalidInputError(f"the files have {size} bytes together, too few to measure: pass {MIN_BYTES} or more")
    settings, busy = ConvertSettings(), os.getloadavg()[0]
    if busy > cores / 2:
        typer.echo(f"load average {busy:.1f}: other processes use this machine, so speeds will be too low", err=True)
    found = measure(files, goal_seconds, settings, cores, lambda text: typer.echo(text, err=True))
    advice = list(advise(found, settings))
    if as_json:
        body = {"measured": list(map(asdict, found)), "settings": list(map(asdict, advice))}
        typer.echo(json.dumps(body, indent=1))
        return
    for line in (*report_lines(found), "", *toml_lines(advice)):
        typer.echo(line)


def ndjson_files(paths: Sequence[Path]) -> list[Path]:
    """The files with bytes and an NDJSON suffix among these files and folders. Raises ``InvalidInputError``."""
    suffixes = InputSettings()
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InvalidInputError(f"{path} does not exist: pass NDJSON files, or folders that hold some")
        inside = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
        found += [item for item in inside if suffixes.suffix_of(item.name) and item.stat().st_size]
    if not found:
        raise InvalidInputError(
            f"no file has bytes and ends in {', '.join(suffixes.suffixes)}: pass NDJSON files, or folders with some"
        )
    return [path.absolute() for path in found]
