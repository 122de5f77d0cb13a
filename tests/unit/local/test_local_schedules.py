"""Schedules follow their time zone at both changes of the clock."""

from datetime import datetime

import pytest

from local.emulator_patches.schedules import next_start


@pytest.mark.parametrize(
    ("expression", "after", "expected", "zone"),
    [
        ("cron(30 2 * * ? *)", "2026-07-01T02:30:00+02:00", "2026-07-02T02:30:00+02:00", "Europe/Berlin"),
        # 02:30 does not exist on the day when the clock is set forward: this run is skipped.
        ("cron(30 2 * * ? *)", "2027-03-27T12:00:00+01:00", "2027-03-29T02:30:00+02:00", "Europe/Berlin"),
        # 02:30 occurs twice on the day when the clock is set back: only the first one fires.
        ("cron(30 2 * * ? *)", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00", "Europe/Berlin"),
        ("cron(30 2 * * ? *)", "2026-10-25T02:30:01+02:00", "2026-10-26T02:30:00+01:00", "Europe/Berlin"),
        ("cron(30 2 * * ? *)", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00", "Europe/Berlin"),
        ("cron(0/15 * * * ? *)", "2026-10-25T02:10:00+01:00", "2026-10-25T03:00:00+01:00", "Europe/Berlin"),
        # Half an hour is missing there.
        ("cron(15 2 * * ? *)", "2026-10-03T12:00:00+10:30", "2026-10-05T02:15:00+11:00", "Australia/Lord_Howe"),
        ("at(2026-07-01T02:30:00)", "2026-11-01T00:00:00+01:00", "2026-07-01T02:30:00+02:00", "Europe/Berlin"),
        ("rate(15 minutes)", "2026-07-01T02:30:00+02:00", "2026-07-01T02:45:00+02:00", "Europe/Berlin"),
    ],
)
def test_a_schedule_fires_at_local_time(expression, after, expected, zone):
    found = next_start(expression, zone, datetime.fromisoformat(after))
    assert found == datetime.fromisoformat(expected).timestamp()
