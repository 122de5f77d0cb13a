"""decide_lane: tables of cases. Clocks are UTC; the deployment is in Berlin."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lake.manifest import Lane
from lake.settings import parse_settings
from router.route.decide_lane import decide_lane, spill
from tests.unit.lake.world import file_of

BERLIN = {"stage": "test", "time_zone": "Europe/Berlin"}


def decided(key: str, now: str, *, size: int = 100, **settings: Any) -> tuple[Any, ...]:
    body = {**BERLIN, **settings}
    instant = datetime.fromisoformat(now).replace(tzinfo=UTC)
    decision = decide_lane(file_of(key, size), parse_settings(body), instant)
    assert decision.urgent == decision.reason.startswith("urgent:")
    return decision.lane, decision.dataset, decision.reason


@pytest.mark.parametrize(
    ("key", "dataset"),
    [
        ("orders/a.ndjson", "orders"),
        ("orders/2026/11/a.jsonl.gz", "orders"),
        ("orders/a.json.bz2", "orders"),
        ("orders/a.ndjson.zst", "orders"),
        ("orders/A.NDJSON", "orders"),
        ("orders/ü b+%41.json", "orders"),
        ("a1_b/line\nbreak.ndjson", "a1_b"),
    ],
)
def test_the_folder_names_the_dataset(key: str, dataset: str) -> None:
    assert decided(key, "2026-11-21T12:00") == (Lane.BATCH, dataset, "waits for the overnight run")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (
            "orders/a.csv",
            "the name ends in none of .ndjson, .jsonl, .json, .ndjson.gz, .jsonl.gz, .json.gz, .ndjson.bz2",
        ),
        ("orders/a.ndjson.xz", "the name ends in none of"),
        ("orders/a.gz", "the name ends in none of"),
        ("orders/2026/", "a folder marker"),
        ("orders.ndjson/", "a folder marker"),
        ("a.ndjson", "no rule of [[datasets]]"),
        ("/a.ndjson", "the folder '' gives no name of a dataset"),
        (f"{'x' * 64}/a.ndjson", "the folder 'xxx"),
    ],
)
def test_keys_that_no_rule_selects_are_ignored(key: str, reason: str) -> None:
    lane, dataset, why = decided(key, "2026-11-20T12:00")
    assert (lane, dataset) == (None, None)
    assert why.startswith(reason)


def test_the_first_dataset_rule_wins() -> None:
    rules = [{"name": "clicks", "prefix": "web/c"}, {"name": "{folder}", "prefix": "web/"}, {"name": "rest"}]
    keys = ("web/clicks/a.json", "web/orders/a.json", "web/a.json", "app/a.json")
    datasets = [decided(key, "2026-11-21T12:00", datasets=rules)[1] for key in keys]
    assert datasets == ["clicks", "orders", "rest", "rest"]


@pytest.mark.parametrize(
    ("now", "lane"),
    [
        ("2026-11-20T06:59:59", Lane.BATCH),
        ("2026-11-20T07:00:00", Lane.STREAM),
        ("2026-11-20T18:59:59", Lane.STREAM),
        ("2026-11-20T19:00:00", Lane.BATCH),
        ("2026-11-21T12:00:00", Lane.BATCH),
        ("2026-07-17T06:00:00", Lane.STREAM),
        ("2026-07-17T18:00:00", Lane.BATCH),
    ],
    ids=["before", "start", "last second", "end", "Saturday", "summer start", "summer end"],
)
def test_peak_hours_are_local(now: str, lane: Lane) -> None:
    reason = "peak hours 08:00-20:00 Europe/Berlin" if lane == Lane.STREAM else "waits for the overnight run"
    assert decided("orders/a.json", now) == (lane, "orders", reason)


@pytest.mark.parametrize(
    ("now", "lane"),
    [
        # Sunday 29 March 2026: 01:59 is followed by 03:00.
        ("2026-03-29T00:59", Lane.BATCH),
        ("2026-03-29T01:00", Lane.STREAM),
        ("2026-03-29T01:29", Lane.STREAM),
        ("2026-03-29T01:30", Lane.BATCH),
        # Sunday 25 October 2026: 02:00 to 03:00 comes twice, the second time as winter time.
        ("2026-10-25T00:00", Lane.BATCH),
        ("2026-10-25T00:30", Lane.STREAM),
        ("2026-10-25T00:59", Lane.STREAM),
        ("2026-10-25T01:00", Lane.BATCH),
        ("2026-10-25T01:30", Lane.STREAM),
        ("2026-10-25T02:00", Lane.STREAM),
        ("2026-10-25T02:30", Lane.BATCH),
    ],
)
def test_clock_changes_follow_the_wall_clock(now: str, lane: Lane) -> None:
    peak = {"hours": ["02:30-03:30"], "days": ["sun"]}
    assert decided("orders/a.json", now, peak=peak)[0] == lane


@pytest.mark.parametrize(
    ("now", "lane"),
    [
        ("2026-11-20T20:59", Lane.BATCH),
        ("2026-11-20T21:00", Lane.STREAM),
        ("2026-11-20T23:30", Lane.STREAM),
        ("2026-11-21T04:59", Lane.STREAM),
        ("2026-11-21T05:00", Lane.BATCH),
        ("2026-11-20T04:00", Lane.BATCH),
        ("2026-11-21T22:00", Lane.BATCH),
    ],
    ids=["before", "start", "after midnight", "last minute", "end", "the morning before", "the evening after"],
)
def test_a_window_over_midnight_belongs_to_the_day_it_begins_on(now: str, lane: Lane) -> None:
    peak = {"hours": ["22:00-06:00"], "days": ["fri"]}
    assert decided("orders/a.json", now, peak=peak)[0] == lane


def test_a_window_can_end_at_midnight() -> None:
    peak = {"hours": ["20:00-24:00"], "days": ["fri"]}
    lanes = [decided("orders/a.json", now, peak=peak)[0] for now in ("2026-11-20T22:59", "2026-11-20T23:00")]
    assert lanes == [Lane.STREAM, Lane.BATCH]


def test_the_second_window_gives_its_own_reason() -> None:
    peak = {"hours": ["06:00-09:00", "12:00-14:00"]}
    assert decided("orders/a.json", "2026-11-20T12:30", peak=peak)[2] == "peak hours 12:00-14:00 Europe/Berlin"


@pytest.mark.parametrize("peak", [{"hours": []}, {"days": []}])
def test_no_peak_at_all(peak: dict[str, list[str]]) -> None:
    assert decided("orders/a.json", "2026-11-20T12:00", peak=peak)[0] == Lane.BATCH


def test_a_dataset_can_stay_out_of_peak() -> None:
    rules = [{"name": "archive", "prefix": "archive/", "peak": False}, {"name": "{folder}"}]
    lanes = [decided(key, "2026-11-20T12:00", datasets=rules)[0] for key in ("archive/a.json", "orders/a.json")]
    assert lanes == [Lane.BATCH, Lane.STREAM]


def test_an_urgent_key_has_priority_over_everything_but_an_ignored_key() -> None:
    overnight = "2026-11-21T23:00"
    urgent = decided("orders/urgent/a.json", overnight)
    assert urgent == (Lane.STREAM, "orders", "urgent: the key matches */urgent/*")
    assert decided("orders/urgent/a.csv", overnight)[0] is None
    assert decided("orders/URGENT/a.json", overnight)[0] == Lane.BATCH


@pytest.mark.parametrize(("suffix", "limit"), [("", 4 * 40_000_000 * 300), (".gz", 15_750_000 * 300)])
@pytest.mark.parametrize("larger", [0, 1])
def test_an_urgent_key_does_not_bring_a_file_into_the_stream_that_it_cannot_convert_in_time(
    suffix: str, limit: int, larger: int
) -> None:
    # Given 4 cores, and a goal of 300 seconds; a compressed file is read by one core
    key, size = f"orders/urgent/a.json{suffix}", limit + larger
    decision = decided(key, "2026-11-20T12:00", size=size, stream={"max_workers": 2})
    expected = f"larger than what the stream lane converts in time ({size} > {limit} bytes)"
    assert decision == (Lane.BATCH, "orders", expected) if larger else decision[0] == Lane.STREAM


def test_a_peak_file_that_spills_says_why() -> None:
    decision = decide_lane(file_of("orders/a.json"), parse_settings(BERLIN), datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert spill(decision) == replace(
        decision,
        lane=Lane.BATCH,
        reason="waits for the overnight run: peak hours 08:00-20:00 Europe/Berlin, "
        "but the stream's backlog takes longer than stream.latency_goal_seconds",
    )
