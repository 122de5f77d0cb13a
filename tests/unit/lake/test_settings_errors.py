"""All errors of a settings file at once; rules that can never match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import InvalidSettingsError
from lake.settings import load_settings, parse_settings

if TYPE_CHECKING:
    from pathlib import Path

RUN_TIMEOUT = ["batch.run_timeout_minutes"]
"""Row groups for which the default workers have too little memory."""


def keys(body: Any) -> list[str]:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings(body)
    return [caught.value.key, *(error.key for error in caught.value.others)]


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
        ({"stage": "a", "batch": [], "peak": 3}, ["peak", "batch"]),
        ({"stage": "a", "price": {"dpu_hour": 10**400}}, ["price.dpu_hour"]),
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
        ({"stage": "a", "batch": {"engines": ["emr-serverless"], "workers": 101}}, ["emr.max_vcpus"]),
        # Values are not compared with one that is wrong itself.
        ({"stage": "a", "batch": {"workers": 1}, "quota": {"dpus": 9}}, ["batch.workers"]),
        ({"stage": "a", "batch": {"run_timeout_minutes": 0}, "convert": {"max_core_minutes": 241}}, RUN_TIMEOUT),
    ],
)
def test_each_error_is_reported_once_and_in_the_order_of_the_keys(body: Any, found: list[str]) -> None:
    assert keys(body) == found


def test_the_message_has_a_line_for_each_error() -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings({"stage": "a", "stream": {"trigger_seconds": 0, "jobs": "two"}})
    assert str(caught.value).splitlines() == [
        "settings: stream.trigger_seconds = 0 is wrong: expected a number from 1 to 3600",
        "settings: stream.jobs = 'two' is wrong: expected a whole number",
    ]


def test_a_folder_is_not_a_settings_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="not readable"):
        load_settings(tmp_path)


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
    body = {"stage": "dev", "datasets": [{"name": name, "prefix": prefix} for name, prefix in (earlier, later)]}
    if not shadowed:
        assert len(parse_settings(body).datasets) == 2
        return
    with pytest.raises(InvalidSettingsError, match="never matches") as caught:
        parse_settings(body)
    assert (caught.value.key, caught.value.value) == ("datasets.prefix", later[1])
