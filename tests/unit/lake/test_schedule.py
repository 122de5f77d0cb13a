"""Schedule expressions: which ones the scheduler rejects, times and days of the others, and the next start."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from lake.time import Schedule

FRIDAY = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "expression",
    [
        "cron(45 7 ? * MON-FRI *)",
        "cron(0/15 8-18 ? JAN,mar SUN 2026-2030)",
        "cron(*/5 0 L * ? *)",
        "cron(0 0 15W 2/3 ? *)",
        "cron(0 0 ? * 6L *)",
        "cron(0 0 ? * FRI#2 2199)",
        "rate(15 minutes)",
        "at(2026-11-20T22:00:00)",
    ],
)
def test_an_expression_of_the_scheduler_is_accepted(expression: str) -> None:
    Schedule.parse(expression)


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
    ("expression", "times", "days"),
    [
        ("cron(30 22 * * ? *)", (1350,), range(7)),
        ("cron(45 7 ? * MON-FRI *)", (465,), range(5)),
        ("cron(0 8/6 ? * fri-mon *)", (480, 840, 1200), (4, 5, 6, 0)),
        ("cron(0,30 6-7 ? * 1,3 *)", (360, 390, 420, 450), (6, 1)),
        ("cron(0 22 ? * */2 *)", (1320,), (6, 1, 3, 5)),
        ("cron(0 22 L * ? *)", (1320,), None),
        ("cron(0 22 * 6 ? *)", (1320,), None),
        ("cron(0 22 ? * 6L *)", (1320,), None),
        ("at(2026-11-20T22:00:00)", (), None),
    ],
)
def test_an_expression_has_times_of_day_and_days(expression: str, times: tuple[int, ...], days: object) -> None:
    schedule = Schedule.parse(expression)
    assert schedule.times == times
    assert schedule.days == (None if days is None else frozenset(days))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("cron(5 2 * * ? *)", "every day at 02:05"),
        ("cron(45 7 ? * MON-FRI *)", "MON-FRI at 07:45"),
        ("cron( 45 7 ? * sat,SUN *)", "SAT,SUN at 07:45"),
        ("cron(0 8,20 * * ? *)", "cron(0 8,20 * * ? *)"),
        ("rate(1 day)", "rate(1 day)"),
    ],
)
def test_a_schedule_is_described_in_words_where_there_are_some(expression: str, words: str) -> None:
    assert Schedule.parse(expression).describe() == words


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


@pytest.mark.parametrize(
    ("expression", "hours"),
    [
        ("cron(0 22 * * ? *)", 24),
        ("cron(0 8,20 * * ? *)", 12),
        ("cron(0 22 ? * MON-FRI *)", 72),
        ("cron(0 6,22 ? * SUN *)", 152),
        ("cron( 0 22 L * ? * )", 64 * 24),
        ("cron(0 22 ? * MON#5 *)", 119 * 24),
        ("cron(0 22 1 6 ? *)", 366 * 24),
        ("cron(0 22 ? * FRI#2 2027)", 366 * 24),
        ("at(2026-11-20T22:00:00)", 24),
        ("rate(7 days)", 168),
        ("rate(1 hour)", 1),
    ],
)
def test_the_longest_pause_is_over_the_end_of_the_week_too(expression: str, hours: int) -> None:
    assert Schedule.parse(expression).max_pause == timedelta(hours=hours)


def test_only_a_schedule_of_each_day_is_daily() -> None:
    assert Schedule.parse("cron(0 22 * * ? *)").is_daily
    assert Schedule.parse("cron(0 1,13 * * ? *)").is_daily
    assert not Schedule.parse("cron(0 22 ? * MON-SAT *)").is_daily
    assert Schedule.parse("cron(0 22 ? * MON-SAT *)").starts_on(date(2026, 11, 21))
    assert not Schedule.parse("cron(0 22 ? * MON-SAT *)").starts_on(date(2026, 11, 22))
