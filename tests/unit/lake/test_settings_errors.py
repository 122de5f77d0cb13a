"""All errors of a settings file at once; the fields of schedule expressions; rules that can never match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lake.errors import InvalidSettingsError
from lake.settings import DatasetRule, Settings, parse_settings
from lake.settings.find_errors import find_errors
from lake.settings.parse import read_body
from lake.settings.schedule_expression import check_schedule

DEV = Path(__file__).parents[3] / "settings" / "dev.toml"
ONE_RUN = 512 << 20
"""Row groups for which the default workers have too little memory."""


def keys(body: Any) -> list[str]:
    return [error.key for error in find_errors(body)]


def test_every_wrong_value_is_found_at_once() -> None:
    # Given wrong values in several tables, in one table, and in one list
    body = {
        "stage": "Dev",
        "colour": "red",
        "peak": {"hours": ["8-20", "08:00-09:00", "09:00-25:00"], "days": ["Monday"]},
        "stream": {"trigger_seconds": 0, "latency_goal_seconds": 0, "max_workers": 1},
        "schedule": {"overnight": "cron(0 25 * * ? *)", "deadline": "6"},
        "datasets": [{"name": "Bad"}, {"name": "orders", "prefix": "o/"}, {"prefix": "x/", "key": "y"}],
        "quota": {"dpus": 1},
    }
    unchanged = repr(body)
    # When, Then each is found once, and the document is left as it was
    assert sorted(keys(body)) == [
        "colour",
        "datasets.key",
        "datasets.name",
        "datasets.name",
        "peak.days",
        "peak.hours",
        "peak.hours",
        "quota.dpus",
        "schedule.deadline",
        "schedule.overnight",
        "stage",
        "stream.latency_goal_seconds",
        "stream.max_workers",
        "stream.trigger_seconds",
    ]
    assert repr(body) == unchanged


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ([], ["settings"]),
        ({}, ["stage"]),
        ({"stage": "a", "batch": [], "peak": 3}, ["batch", "peak"]),
        ({"stage": "a", "datasets": {}}, ["datasets"]),
        ({"stage": "a", "datasets": []}, ["datasets"]),
        ({"stage": "a", "datasets": [3, {"name": "B"}]}, ["datasets", "datasets.name"]),
        (
            {"stage": "a", "datasets": [{"name": "b"}, {"name": "c"}], "quota": {"dpus": 1}},
            ["datasets.prefix", "quota.dpus"],
        ),
        (
            {"stage": "a", "datasets": [{"name": "b", "urgent": {"tags": ["x"], "min_bytes": -1}}], "peak": 3},
            ["datasets.urgent.tags", "datasets.urgent.min_bytes", "peak"],
        ),
        ({"stage": "a", "datasets": [{"name": "b", "urgent": 3}], "peak": 3}, ["datasets.urgent", "peak"]),
        ({"stage": "a", "convert": {"row_group_bytes": ONE_RUN}}, ["stream.worker_type"]),
        ({"stage": "a", "batch": {"engines": ["emr-serverless"], "workers": 101}}, ["emr.max_vcpus"]),
    ],
)
def test_an_error_without_a_key_that_could_be_removed_is_reported_once(body: Any, found: list[str]) -> None:
    assert keys(body) == found


def test_a_valid_file_has_no_errors() -> None:
    assert find_errors(read_body(DEV)) == []


def test_a_folder_is_not_a_settings_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="not readable"):
        read_body(tmp_path)


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0 22 * * ? *)",
        "cron(45 7 ? * MON-FRI *)",
        "cron(0/15 8-18 ? JAN,mar SUN 2026-2030)",
        "cron(*/5 0 L * ? *)",
        "cron(0 0 15W 2/3 ? *)",
        "cron(0 0 ? * 6L *)",
        "cron(0 0 ? * FRI#2 2199)",
        "rate(1 minute)",
        "rate(15 minutes)",
        "rate(2 days)",
        "at(2026-11-20T22:00:00)",
    ],
)
def test_an_expression_of_the_scheduler_is_accepted(expression: str) -> None:
    check_schedule("schedule.overnight", expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("22:00", "cron(...), rate(...), at(...)"),
        ("cron(0 22 * * *)", "the 6 fields minutes, hours, day of month, month, day of week, year; there are 5"),
        ("cron(0 22 * * ? *", "cron(...)"),
        ("cron(60 22 * * ? *)", "its field minutes is '60', expected numbers from 0 to 59"),
        ("cron(0 24 * * ? *)", "its field hours is '24'"),
        ("cron(0 8- * * ? *)", "its field hours is '8-'"),
        ("cron(0 8-9-10 * * ? *)", "its field hours"),
        ("cron(0 8/0 * * ? *)", "its field hours"),
        ("cron(0 ? * * ? *)", "its field hours"),
        ("cron(0 22 32 * ? *)", "its field day of month"),
        ("cron(0 22 32W * ? *)", "its field day of month"),
        ("cron(0 22 * MAI ? *)", "its field month is 'MAI', expected numbers from 1 to 12 or JAN-DEC"),
        ("cron(0 22 ? * 0 *)", "its field day of week is '0', expected numbers from 1 to 7 or SUN-SAT"),
        ("cron(0 22 ? * MON#6 *)", "its field day of week"),
        ("cron(0 22 * * ? 1969)", "its field year"),
        ("cron(0 22 * * MON *)", "? in exactly one of"),
        ("cron(0 22 ? * ? *)", "? in exactly one of"),
        ("rate(0 minutes)", "such as rate(1 day)"),
        ("rate(5 weeks)", "such as rate(1 day)"),
        ("at(2026-11-31T22:00:00)", "such as at(2026-11-20T22:00:00)"),
    ],
)
def test_a_field_that_the_scheduler_refuses_is_named(expression: str, expected: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        check_schedule("schedule.overnight", expression)
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    ("schedule", "key"),
    [
        ({"overnight": "cron(0 6 * * ? *)"}, "schedule.deadline"),
        ({"stream_start": "cron(15 20 ? * MON-FRI *)"}, "schedule.stream_end"),
    ],
)
def test_a_window_ends_at_another_time_than_it_starts(schedule: dict[str, str], key: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings({"stage": "dev", "schedule": schedule})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("earlier", "later", "shadowed"),
    [
        (("a", "x/"), ("b", "x/y/"), True),
        (("a", "x/"), ("b", "x/"), True),
        (("a", ""), ("{folder}", ""), True),
        (("a", "x/y/"), ("b", "x/"), False),
        (("a", "x/"), ("b", "y/"), False),
        (("{folder}", ""), ("b", "orders/"), True),
        (("{folder}", ""), ("b", "orders"), False),
        (("{folder}", ""), ("b", ""), False),
        (("{folder}", "x/"), ("{folder}", "x/y"), True),
        (("{folder}", "x/y"), ("{folder}", "x/"), False),
    ],
)
def test_a_rule_that_never_matches_is_refused(earlier: tuple[str, str], later: tuple[str, str], shadowed: bool) -> None:
    rules = (DatasetRule(*earlier), DatasetRule(*later))
    if not shadowed:
        assert Settings(stage="dev", datasets=rules).datasets == rules
        return
    with pytest.raises(InvalidSettingsError, match="never matches") as caught:
        Settings(stage="dev", datasets=rules)
    assert (caught.value.key, caught.value.value) == ("datasets.prefix", later[1])
