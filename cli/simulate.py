"""``hybrid-router simulate``: what a day of files would look like, without any cloud."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
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


def simulate_profile(path: Path, settings: Settings, *, as_json: bool) -> None:
    """Print what a profile's day comes to.

    Raises
    ------
    InvalidInputError
        The profile is not valid, or does not go with the settings.
    """
    profile = load_profile(path)
    arrivals = ProfileArrivals(profile, settings, night_start(settings, date.fromisoformat(profile.date)))
    _print(arrivals, settings, profile.gzip.ratio, profile.failures.share, as_json=as_json)


def simulate_listing(path: Path, settings: Settings, day: str | None, *, as_json: bool) -> None:
    """Print what the files of a listing come to.

    Parameters
    ----------
    path
        CSV file with the columns ``key``, ``size`` (bytes as stored) and ``time`` (ISO 8601; UTC where it has no zone).
    day
        Local date on which the night begins, ``YYYY-MM-DD``; None: that with the most files before it.

    Raises
    ------
    InvalidInputError
        The file or the date is not valid.
    """
    try:
        chosen = None if day is None else date.fromisoformat(day)
    except ValueError as error:
        raise InvalidInputError(f"--date {day} is not a date: pass one such as 2026-11-18") from error
    arrivals = ListedArrivals(path, settings, chosen)
    if arrivals.left_out:
        _progress(f"{arrivals.left_out} files of other days are left out; --date chooses the night")
    _print(arrivals, settings, GzipShare().ratio, Failures().share, as_json=as_json)


def _print(arrivals: Arrivals, settings: Settings, ratio: float, failing_share: float, *, as_json: bool) -> None:
    found = simulate(arrivals, settings, ratio, failing_share, _progress)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
        return
    for line in report_lines(found, settings.time_zone):
        typer.echo(line)


def _progress(text: str) -> None:
    typer.echo(text, err=True)
