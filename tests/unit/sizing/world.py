"""Helpers for the tests of simulate: settings, a day, its night."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from lake.settings import Settings, parse_settings
from lake.speed import Speeds
from sizing.arrivals import Arrivals, FileGroup, Profile, parse_profile, profile_arrivals
from sizing.options import night_start
from sizing.routing import Router, SimulatedManifest

NIGHT = datetime(2026, 11, 18, 22, tzinfo=UTC)
MB = 1_000_000


def settings(**groups: Any) -> Settings:
    """With windows of 20 seconds, which is four times as fast as the default."""
    return parse_settings({"stage": "t", "input": {"event_window_seconds": 20}, **groups})


def profile(**fields: Any) -> Profile:
    return parse_profile({"files": 1000, "sizes": [{"bytes": 10 * MB}], **fields})


def arrivals(found: Profile, of: Settings) -> Arrivals:
    return profile_arrivals(found, of, night_start(of, date.fromisoformat(found.date)))


def router(of: Settings) -> Router:
    return Router(of, Speeds({}, of), NIGHT)


def window_of(of: Settings, at: datetime) -> int:
    """The window that begins at ``at``, in the day before ``NIGHT``."""
    return int((at - (NIGHT - timedelta(days=1))).total_seconds() // of.input.event_window_seconds)


def routed(of: Settings, groups: list[FileGroup], at: datetime) -> list[SimulatedManifest]:
    return router(of).route(window_of(of, at), groups)
