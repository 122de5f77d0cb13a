"""``hybrid-router simulate``: what a day of files would look like, without any cloud."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date
from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer

from lake.errors import InvalidInputError
from simulate.arrivals import ProfileArrivals
from simulate.day import simulate
from simulate.listing import ListedArrivals
from simulate.profile import Failures, GzipShare, load_profile
from simulate.report import report_lines
from simulate.schedule import night_start

if TYPE_CHECKING:
    from pathlib import Path

    from lake.settings import Settings
    from simulate.arrivals import Arrivals


@dataclass(frozen=True, slots=True)
class Output:
    """How a simulation is shown."""

    as_json: bool
    plots: Path | None
    """Folder for plots; None: there are none."""


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


def simulate_listing(path: Path, settings: Settings, day: str | None, output: Output) -> None:
    """Show what the files of a listing come to.

    Parameters
    ----------
    path
        CSV file with the columns ``key``, ``size`` (bytes as stored) and ``time`` (ISO 8601; UTC where it has no zone).
    day
        Local date on which the night begins, ``YYYY-MM-DD``; None: that with the most files before it.

    Raises
    ------
    InvalidInputError
        The file or the date is not valid; or plots need a package that is not installed.
    """
    try:
        chosen = None if day is None else date.fromisoformat(day)
    except ValueError as error:
        raise InvalidInputError(f"--date {day} is not a date: pass one such as 2026-11-18") from error
    arrivals = ListedArrivals(path, settings, chosen)
    if arrivals.left_out:
        _progress(f"{arrivals.left_out} files of other days are left out; --date chooses the night")
    _show(arrivals, settings, GzipShare().ratio, Failures().share, output)


def _show(arrivals: Arrivals, settings: Settings, ratio: float, failing_share: float, output: Output) -> None:
    if output.plots is not None and find_spec("matplotlib") is None:
        raise InvalidInputError(
            "--plots needs the package matplotlib, which is not installed: run 'make setup' in a checkout, then the "
            "same command there as '.venv/bin/hybrid-router'"
        )
    found = simulate(arrivals, settings, ratio, failing_share, _progress)
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
