"""Schedules follow their time zone at both changes of the clock."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from ministack.services import eventbridge, scheduler  # type: ignore[import-untyped]

from local.emulator_patches import schedules

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(autouse=True)
def patched(monkeypatch):
    for module, name in (
        (scheduler, "_at_time_epoch"),
        (eventbridge, "_parse_cron_fields"),
        (eventbridge, "_cron_next_fire"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    schedules._patch_time_zones()


def _zoned(text: str) -> schedules._ZonedExpression:
    expression = schedules._ZonedExpression(text)
    expression.zone = BERLIN
    return expression


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2026-07-01T02:30:00+02:00", "2026-07-02T02:30:00+02:00"),
        ("2026-12-31T23:00:00+00:00", "2027-01-01T02:30:00+01:00"),
        # 02:30 does not exist on the day when the clock is set forward: this run is skipped.
        ("2027-03-27T12:00:00+01:00", "2027-03-29T02:30:00+02:00"),
        # 02:30 occurs twice on the day when it is set back: only the first one fires.
        ("2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00"),
        ("2026-10-25T02:30:01+02:00", "2026-10-26T02:30:00+01:00"),
    ],
)
def test_cron_fires_at_local_time(after, expected):
    fields = eventbridge._parse_cron_fields(_zoned("cron(30 2 * * ? *)"))
    assert eventbridge._cron_next_fire(fields, datetime.fromisoformat(after)) == datetime.fromisoformat(expected)


def test_at_is_local_time():
    expected = datetime.fromisoformat("2026-07-01T02:30:00+02:00").timestamp()
    assert scheduler._at_time_epoch(_zoned("at(2026-07-01T02:30:00)")) == expected
