"""``hybrid-router simulate``: what a day of files would look like, without any cloud."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING

import typer

from cli.local_stage.local_packages import require_matplotlib
from lake.counted import format_count
from lake.errors import InvalidInputError
from simulate.arrivals import ProfileArrivals
from simulate.day import simulate
from simulate.listing import ListedArrivals
from simulate.listing_files import read_csv, read_inventory
from simulate.profile import Failures, GzipShare, load_profile
from simulate.recorded import read_recorded
from simulate.report import report_lines
from simulate.schedule import night_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from cli.deployed_stack import DeployedStack
    from lake.ledger import DatasetSpeed
    from lake.settings import Settings
    from simulate.arrivals import Arrivals
    from simulate.listing import ListedFile


@dataclass(frozen=True, slots=True)
class Output:
    """How a simulation is shown."""

    as_json: bool
    plots: Path | None
    """Folder for plots; None: there are none."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the files of a day come from: exactly one of these."""

    profile: Path | None = None
    csv: Path | None = None
    inventory: Path | None = None
    """The manifest.json of an S3 Inventory report."""
    ledger: Callable[[], DeployedStack] | None = None
    """Connects to the stack whose ledger it is."""


def simulate_source(source: Source, settings: Settings, day: str | None, output: Output) -> None:
    """Show what the files of the source come to.

    Raises
    ------
    BadParameter
        There is no source, or more than one.
    InvalidInputError
        As ``simulate_profile``, ``simulate_listing`` and ``simulate_ledger`` say.
    """
    given = [item for item in (source.profile, source.csv, source.inventory, source.ledger) if item is not None]
    if len(given) != 1:
        raise typer.BadParameter("pass one of a profile, --from-csv, --from-inventory and --from-ledger")
    if source.profile is not None:
        simulate_profile(source.profile, settings, output)
    elif source.csv is not None:
        simulate_listing(read_csv(source.csv), source.csv, settings, day, output)
    elif source.inventory is not None:
        simulate_listing(read_inventory(source.inventory), source.inventory, settings, day, output)
    elif source.ledger is not None:
        simulate_ledger(source.ledger(), settings, day, output)


def simulate_profile(path: Path, settings: Settings, output: Output) -> None:
    """Show what a profile's day comes to.

    Raises
    ------
    InvalidInputError
        The profile is not valid, or does not go with the settings; or plots need a package that is not installed.
    """
    profile = load_profile(path)
    arrivals = ProfileArrivals(profile, settings, night_start(settings, date.fromisoformat(profile.date)))
    _show(arrivals, settings, profile.gzip.ratio, profile.failures.share, output)


def simulate_listing(
    files: Iterable[ListedFile], path: Path, settings: Settings, day: str | None, output: Output
) -> None:
    """Show what the files of a listing come to.

    Parameters
    ----------
    path
        The listing's name, for errors.
    day
        Local date on which the night begins, ``YYYY-MM-DD``; None: that with the most files before it.

    Raises
    ------
    InvalidInputError
        The listing or the date is not valid; or plots need a package that is not installed.
    """
    _show_listing(files, str(path), settings, _parse_day(day), output)


def simulate_ledger(stack: DeployedStack, settings: Settings, day: str | None, output: Output) -> None:
    """Show what the files come to that a stage recorded in the 24 hours before the night of ``day``.

    The speed of each dataset is what the ledger has measured of it, as for the plan of a night.

    Raises
    ------
    InvalidInputError
        The date is missing or not valid, or nothing was recorded on it; or plots need a package that is not installed.
    """
    chosen = _parse_day(day)
    if chosen is None:
        raise InvalidInputError("--date is missing: pass the local date of the night, such as 2026-11-18")
    resources = stack.resources
    files = read_recorded(
        stack.s3, resources.control_bucket, resources.input_bucket, night_start(settings, chosen), _progress
    )
    _show_listing(files, "the ledger", settings, chosen, output, stack.ledger.datasets.speeds())


def _parse_day(day: str | None) -> date | None:
    try:
        return None if day is None else date.fromisoformat(day)
    except ValueError as error:
        raise InvalidInputError(f"--date {day} is not a date: pass one such as 2026-11-18") from error


def _show_listing(
    files: Iterable[ListedFile],
    source: str,
    settings: Settings,
    day: date | None,
    output: Output,
    measured: Mapping[str, DatasetSpeed] | None = None,
) -> None:
    arrivals = ListedArrivals(files, source, settings, day)
    if arrivals.left_out:
        files_left_out = format_count(arrivals.left_out, "file of other days is", "files of other days are")
        _progress(f"{files_left_out} left out; --date chooses the night")
    _show(arrivals, settings, GzipShare().ratio, Failures().share, output, measured)


def _show(
    arrivals: Arrivals,
    settings: Settings,
    ratio: float,
    failing_share: float,
    output: Output,
    measured: Mapping[str, DatasetSpeed] | None = None,
) -> None:
    if output.plots is not None:
        require_matplotlib()
    found = simulate(arrivals, settings, ratio, failing_share, _progress, measured)
    if output.as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
    else:
        for line in report_lines(found, settings.time_zone):
            typer.echo(line)
    if output.plots is not None:
        from simulate.plots import write_plots

        for path in write_plots(found, output.plots, settings.time_zone):
            _progress(f"written: {path}")


def _progress(text: str) -> None:
    typer.echo(text, err=True)
