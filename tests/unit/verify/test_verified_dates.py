"""Which dates are verified, and how the work of a manifest is divided."""

import errno
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from batch_job.verify_dates import (
    MAX_DUE_DATES,
    MAX_UNREADABLE,
    TIME_SHARE,
    DateCheck,
    due_dates,
    last_settled_date,
    verify_dates,
)
from lake.errors import InvalidInputError
from lake.settings import ScheduleSettings, parse_settings
from verify.find_files import TimeOverError
from verify.manifest_check import MAX_TASKS, tasks_of
from verify.report import HourReport

DAILY = "cron(0 22 * * ? *)"
THREE = ["2026-03-04", "2026-03-05", "2026-03-06"]


@pytest.mark.parametrize(
    ("now", "overnight", "verified", "expected"),
    [
        # The 6th ended at midnight of the 7th: 36 hours later it is noon of the 8th.
        ("2026-03-08T12:00:00+00:00", DAILY, [], THREE),
        ("2026-03-08T11:59:59+00:00", DAILY, [], ["2026-03-03", "2026-03-04", "2026-03-05"]),
        ("2026-03-08T13:00:00+01:00", DAILY, [], THREE),
        ("2026-03-08T12:00:00+00:00", DAILY, ["2026-03-05", "2026-03-06-early"], ["2026-03-04", "2026-03-06"]),
        ("2026-03-08T12:00:00+00:00", DAILY, THREE, []),
        # The files of Friday night to Sunday are converted in the night of Monday the 9th.
        ("2026-03-09T13:00:00+00:00", "cron(0 22 ? * MON-FRI *)", [], ["2026-03-03", "2026-03-04", "2026-03-05"]),
        ("2026-03-11T13:00:00+00:00", "cron(0 22 ? * MON-FRI *)", [], ["2026-03-05", "2026-03-06", "2026-03-07"]),
        ("2026-03-08T12:00:00+00:00", "rate(1 day)", [], THREE),
    ],
)
def test_dates_are_due_once_the_night_has_had_them(
    now: str, overnight: str, verified: list[str], expected: list[str]
) -> None:
    last = last_settled_date(datetime.fromisoformat(now), ScheduleSettings(overnight).settled_after)
    assert due_dates(last, verified) == expected


@given(st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2027, 1, 1), timezones=st.just(UTC)))
def test_daily_runs_at_any_time_leave_no_date_out(start: datetime) -> None:
    # Given a daily run, up to an hour late, and a document for each date that it has compared
    verified: set[str] = set()
    for day in range(10):
        now = start + timedelta(days=day, minutes=13 * day % 60)
        verified.update(due_dates(last_settled_date(now, timedelta(hours=36)), verified))
    # Then every date up to the last one has been compared
    last = datetime.fromisoformat(last_settled_date(start + timedelta(days=9), timedelta(hours=36)))
    expected = {(last - timedelta(days=days)).strftime("%Y-%m-%d") for days in range(9 + MAX_DUE_DATES)}
    assert expected <= verified


class DueDates:
    """A run that compares the three due dates of some datasets; its documents and its log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, datasets: list[str], check: Callable[[str], None]) -> None:
        self.now = datetime(2026, 3, 8, 12, tzinfo=UTC)
        self.dates, self.lines = list[str](), list[str]()
        self.left, self.expiries = dict[str, int](), dict[int, datetime]()
        given = {"stage": "test", "time_zone": "UTC", "verify": {"share": 0.1}, "batch": {"run_timeout_minutes": 240}}
        self.context: Any = SimpleNamespace(
            settings=parse_settings({**given, "datasets": [{"name": name, "prefix": name} for name in datasets]}),
            ledger=SimpleNamespace(
                datasets=SimpleNamespace(names=list), arrivals=SimpleNamespace(expiries=lambda: self.expiries)
            ),
            resources=SimpleNamespace(control_bucket="control"),
            region="eu-central-1",
            s3=SimpleNamespace(list_objects_v2=lambda **_: {"IsTruncated": False}, put_object=self.put),
            spark=SimpleNamespace(sparkContext=None),
            run="jr_1",
            clock=lambda: self.now,
            log=self.lines.append,
        )

        def check_dataset(date: DateCheck, name: str) -> list[HourReport]:
            self.dates.append(date.date)
            check(name)
            return []

        monkeypatch.setattr(DateCheck, "_check_dataset", check_dataset)

    def put(self, **request: Any) -> None:
        self.left[request["Key"]] = json.loads(request["Body"])["datasets_left"]

    @property
    def alarms(self) -> list[str]:
        return [line.partition(",")[0] for line in self.lines if "ALARM" in line]


@pytest.mark.parametrize(("minutes", "ended"), [(60, 0), (50, 1)])
def test_a_verification_reports_before_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, minutes: int, ended: int
) -> None:
    # Given three datasets, whose listing takes an hour each, and a run that Glue ends after four; or a little less, so
    # that a listing is cut off
    end = datetime(2026, 3, 8, 12, tzinfo=UTC) + timedelta(hours=4) * TIME_SHARE

    def check(_: str) -> None:
        due.now += timedelta(minutes=minutes)
        if minutes < 60 and due.now >= end:
            raise TimeOverError

    due = DueDates(monkeypatch, ["a", "b", "c"], check)
    # When
    assert verify_dates(due.context, "due") == 1
    # Then no dataset is begun after nine tenths of the time, and a date that was not begun stays due
    assert due.dates == [THREE[0]] * 3 + [THREE[1]] * (1 + ended)
    assert due.left == {f"verify/{THREE[0]}.json": 0, f"verify/{THREE[1]}.json": 2}
    assert due.alarms == [
        f"ALARM verify {THREE[1]}: 2 datasets were not compared",
        f"ALARM verify {THREE[2]}: 3 datasets were not compared",
    ]


def test_a_date_whose_files_the_ledger_may_have_forgotten_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given rows that expired under an earlier setting
    due = DueDates(monkeypatch, ["a"], lambda _: None)
    due.expiries = {60: due.now}
    # When, Then its files are not reported as unknown
    with pytest.raises(InvalidInputError, match=r"2026-01-08T00 is older than ledger\.keep_days allows"):
        verify_dates(due.context, "2026-01-08")
    assert verify_dates(due.context, "2026-01-09") == 0


@pytest.mark.parametrize("which", ["yesterday", "", "2026-02-30", "2026-3-4"])
def test_a_wrong_date_is_refused_with_what_to_set(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    with pytest.raises(InvalidInputError, match="set it to due, or to a date"):
        verify_dates(DueDates(monkeypatch, ["a"], lambda _: None).context, which)


@pytest.mark.parametrize("refused", [1, MAX_UNREADABLE, MAX_UNREADABLE + 1])
@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "ListObjectVersions"),
        OSError(errno.ENOSPC, "database or disk is full"),
    ],
)
def test_a_dataset_that_cannot_be_read_leaves_the_others_to_be_compared(
    monkeypatch: pytest.MonkeyPatch, refused: int, error: Exception
) -> None:
    # Given datasets, some of which S3 refuses to list, or whose files do not fit on the disk
    names = [f"d{number:02}" for number in range(MAX_UNREADABLE + 2)]

    def check(name: str) -> None:
        if name in names[:refused]:
            raise error

    due = DueDates(monkeypatch, names, check)
    # When more than single datasets are affected, then the run fails, and the dates stay due
    if refused > MAX_UNREADABLE:
        with pytest.raises(type(error)):
            verify_dates(due.context, "due")
        assert due.left == {}
        return
    # Then the others are compared, and the affected ones are named
    assert verify_dates(due.context, "due") == 1
    assert due.dates == [day for day in THREE for _ in names]
    assert due.left == {f"verify/{day}.json": refused for day in THREE}
    assert sorted(due.alarms) == sorted(
        f"ALARM verify {day}: the dataset {name} could not be compared: {error}"
        for day in THREE
        for name in names[:refused]
    )


@given(st.lists(st.integers(0, 10_000_000), max_size=300))
def test_tasks_cover_the_manifest_and_are_few(sizes: list[int]) -> None:
    tasks = tasks_of(sizes, int)
    assert [size for task in tasks for size in task] == sizes
    assert len(tasks) <= MAX_TASKS
    assert all(sum(task) <= max(2 * sum(sizes) / MAX_TASKS, *sizes, 0) for task in tasks)
