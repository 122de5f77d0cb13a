"""``hybrid-router simulate``: what a day of files would look like, without any cloud."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING

import typer

from simulate.arrivals import ProfileArrivals
from simulate.day import simulate
from simulate.profile import load_profile
from simulate.report import report_lines
from simulate.schedule import night_start

if TYPE_CHECKING:
    from pathlib import Path

    from lake.settings import Settings


def simulate_profile(path: Path, settings: Settings, *, as_json: bool) -> None:
    """Print what a profile's day comes to.

    Raises
    ------
    InvalidInputError
        The profile is not valid, or does not go with the settings.
    """
    profile = load_profile(path)
    night = night_start(settings, date.fromisoformat(profile.date))
    arrivals = ProfileArrivals(profile, settings, night)
    found = simulate(arrivals, settings, profile.gzip.ratio, profile.failures.share, _progress)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
        return
    for line in report_lines(found, settings.time_zone):
        typer.echo(line)


def _progress(text: str) -> None:
    typer.echo(text, err=True)
