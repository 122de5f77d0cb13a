"""Schedule expressions: which ones the scheduler rejects, times and days of the others, and the next start."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from lake.time import Schedule

FRIDAY = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("22:00", "cron(...), rate(...), at(...)"),
        ("cron(0 22 * * *)", "the 6 fields minutes, hours, day of month, month, day of week, year; there are 5"),
        ("cron(0 22 * * ? *", "cron(...)"),
        ("cron(60 22 * * ? *)", "its field minutes is '60', expected numbers from 0 to 59"),
        ("cron(0 8- * * ? *)", "its field hours is '8-'"),
        ("cron(0 8/0 * * ? *)", "its field hours"),
        ("cron(*/60 * * * ? *)", "its field minutes is '*/60'"),
        ("cron(0 22 ? * MON/8 *)", "its field day of week"),
        (f"cron({'0,' * 120}0 22 * * ? *)", "at most 256 characters"),
        ("cron(0 ? * * ? *)", "its field hours"),
        ("cron(0 22 32W * ? *)", "its field day of month"),
        ("cron(0 22 * MAI ? *)", "its field month is 'MAI', expected numbers from 1 to 12 or JAN-DEC"),
        ("cron(0 22 ? * 0 *)", "its field day of week is '0', expected numbers from 1 to 7 or SUN-SAT"),
        ("cron(0 22 ? * MON#6 *)", "its field day of week"),
        ("cron(0 22 * * ? 1969)", "its field year"),
        ("cron(0 22 * * MON *)", "? in exactly one of"),
        ("rate(0 minutes)", "such as rate(1 day)"),
        ("rate(100000 days)", "such as rate(1 day)"),
        ("rate(1\u0660 minutes)", "such as rate(1 day)"),
        ("at(2026-11-31T22:00:00)", "such as at(2026-11-20T22:00:00)"),
        ("at(2026-1-2T2:0:0)", "such as at(2026-11-20T22:00:00)"),
    ],
)
def test_a_field_that_the_scheduler_refuses_is_named(expression: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        Schedule.parse(expression)


@pytest.mark.parametrize(
    ("expression", "times", "days", "hours", "words"),
    [
        ("cron(5 2 * * ? *)", (125,), range(7), 24, "every day at 02:05"),
        ("cron(0 8,20 * * ? *)", (480, 1200), range(7), 12, None),
        ("cron(45 7 ? * MON-FRI *)", (465,), range(5), 72, "MON-FRI at 07:45"),
        ("cron( 45 7 ? * sat,SUN * )", (465,), (5, 6), 144, "SAT,SUN at 07:45"),
        ("cron(0 6,22 ? * SUN *)", (360, 1320), (6,), 152, None),
        ("cron(0 8/6 ? * fri-mon *)", (480, 840, 1200), (4, 5, 6, 0), 84, None),
        ("cron(0,30 6-7 ? * 1,3 *)", (360, 390, 420, 450), (6, 1), 118.5, None),
        ("cron(0 22 ? * */2 *)", (1320,), (6, 1, 3, 5), 48, "*/2 at 22:00"),
        ("cron(0 22 L * ? *)", (1320,), None, 64 * 24, None),
        ("cron(0 22 ? * 6L *)", (1320,), None, 64 * 24, None),
        ("cron(0 22 ? * MON#5 *)", (1320,), None, 119 * 24, None),
        ("cron(0 22 * 6 ? *)", (1320,), None, 366 * 24, None),
        ("cron(0/30 8-9 ? JAN,mar SUN 2026-2030)", (480, 510, 540, 570), None, 366 * 24, None),
        ("cron(*/20 0 15W 2/3 ? *)", (0, 20, 40), None, 366 * 24, None),
        ("cron(0 0 ? * FRI#2 2199)", (0,), None, 366 * 24, None),
        ("rate(7 days)", (), None, 168, None),
        ("rate(1 hour)", (), None, 1, None),
        ("rate(15 minutes)", (), None, 0.25, None),
        ("at(2026-11-20T22:00:00)", (), None, 24, None),
    ],
)
def test_an_expression_has_times_of_day_days_a_maximum_pause_and_a_description(
    expression: str, times: tuple[int, ...], days: Iterable[int] | None, hours: float, words: str | None
) -> None:
    schedule = Schedule.parse(expression)
    assert schedule.times == times
    assert schedule.days == (None if days is None else frozenset(days))
    assert schedule.max_pause == timedelta(hours=hours)
    assert schedule.describe() == (words or expression)


@pytest.mark.parametrize(
    ("expression", "now", "start"),
    [
        # A Friday at 22:00 in Berlin; the start of that minute is over
        ("cron(0 23 * * ? *)", FRIDAY, datetime(2026, 11, 20, 22, tzinfo=UTC)),
        ("cron(0 22 * * ? *)", FRIDAY, datetime(2026, 11, 21, 21, tzinfo=UTC)),
        ("cron(0 22 ? * MON-FRI *)", FRIDAY, datetime(2026, 11, 23, 21, tzinfo=UTC)),
        ("cron(0 6,22 ? * SAT *)", FRIDAY, datetime(2026, 11, 21, 5, tzinfo=UTC)),
        ("cron(0 22 L * ? *)", FRIDAY, None),
        ("rate(1 day)", FRIDAY, None),
        # The scheduler skips a time in the missing hour, and starts once in the doubled one.
        ("cron(30 2 * * ? *)", datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 3, 29, 0, 30, tzinfo=UTC)),
        ("cron(30 2 ? * SUN *)", datetime(2027, 3, 21, 12, tzinfo=UTC), datetime(2027, 4, 4, 0, 30, tzinfo=UTC)),
        ("cron(30 2 * * ? *)", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 26, 1, 30, tzinfo=UTC)),
    ],
)
def test_the_next_start_is_on_the_wall_clock_of_the_time_zone(
    expression: str, now: datetime, start: datetime | None
) -> None:
    assert Schedule.parse(expression).next_start("Europe/Berlin", now) == start
