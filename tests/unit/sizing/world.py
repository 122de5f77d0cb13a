"""What the tests of simulate share: settings, a day, its night."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from lake.settings import Settings, parse_settings
from sizing.arrivals import FileGroup, ProfileArrivals
from sizing.assumptions import Speed
from sizing.day import simulate
from sizing.options import night_start
from sizing.profile import Profile, parse_profile
from sizing.result import Simulation
from sizing.routing import Router, SimulatedManifest

NIGHT = datetime(2026, 11, 18, 22, tzinfo=UTC)
MB = 1_000_000


def settings(**groups: Any) -> Settings:
    """With windows of 20 seconds: four times as fast as the default's."""
    return parse_settings({"stage": "t", "input": {"event_window_seconds": 20}, **groups})


def profile(**fields: Any) -> Profile:
    return parse_profile({"files": 1000, "sizes": [{"bytes": 10 * MB}], **fields})


def arrivals(found: Profile, of: Settings) -> ProfileArrivals:
    return ProfileArrivals(found, of, night_start(of, date.fromisoformat(found.date)))


def routed(of: Settings, groups: list[FileGroup], at: datetime) -> list[SimulatedManifest]:
    """The manifests of a window that begins at ``at``, in the day before ``NIGHT``."""
    window = int((at - (NIGHT - timedelta(days=1))).total_seconds() // of.input.event_window_seconds)
    return Router(of, Speed.of(of, 8.0), NIGHT).route(window, groups)


def simulated(of: Settings | None = None, **fields: Any) -> Simulation:
    of = of or settings()
    return simulate(arrivals(profile(**fields), of), of, 8.0, lambda _: None)
