"""decide_lane with ``datasets.urgent``: tables of cases. It is Saturday, without peak hours, unless a case says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lake.manifest import Lane
from lake.settings import parse_settings
from router.route.decide_lane import Attribute, LaneDecision, NotRead, decide_lane
from tests.unit.lake.world import file_of

TAGS, METADATA = Attribute.TAGS, Attribute.METADATA
SATURDAY, FRIDAY = datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC)
WAITS = "waits for the overnight run"
BOTH = {"tags": ["priority=high", "stage=*"], "metadata": ["feed=live*"]}
GONE, DENIED = NotRead("gone (404)"), NotRead("access denied (403)", is_denied=True)


def decided(
    urgent: dict[str, Any],
    attributes: dict[Attribute, Any] | None = None,
    *,
    key: str = "orders/a.json",
    size: int = 100,
    now: datetime = SATURDAY,
    **stream: Any,
) -> LaneDecision:
    rules = [{"name": "orders", "prefix": "orders/", "urgent": urgent}, {"name": "{folder}"}]
    settings = parse_settings({"stage": "test", "datasets": rules, "stream": stream})
    return decide_lane(file_of(key, size), settings, now, attributes or {})


@pytest.mark.parametrize(
    ("urgent", "size", "reason"),
    [
        ({}, 0, None),
        ({"max_bytes": 100}, 0, "its 0 bytes are within datasets.urgent.max_bytes (100)"),
        ({"max_bytes": 100}, 100, "its 100 bytes are within datasets.urgent.max_bytes (100)"),
        ({"max_bytes": 100}, 101, None),
        ({"min_bytes": 100}, 99, None),
        ({"min_bytes": 100}, 100, "its 100 bytes are within datasets.urgent.min_bytes (100)"),
        ({"min_bytes": 2, "max_bytes": 3}, 1, None),
        (
            {"min_bytes": 2, "max_bytes": 3},
            3,
            "its 3 bytes are within datasets.urgent.min_bytes (2) and datasets.urgent.max_bytes (3)",
        ),
        ({"min_bytes": 2, "max_bytes": 3}, 4, None),
    ],
)
def test_a_size_can_be_urgent(urgent: dict[str, Any], size: int, reason: str | None) -> None:
    expected = (Lane.BATCH, WAITS) if reason is None else (Lane.STREAM, f"urgent: {reason}")
    decision = decided(urgent, size=size)
    assert (decision.lane, decision.reason, decision.unread) == (*expected, None)


@pytest.mark.parametrize(
    ("attributes", "lane", "reason", "unread"),
    [
        ({}, Lane.BATCH, WAITS, TAGS),
        ({TAGS: {}}, Lane.BATCH, WAITS, METADATA),
        ({TAGS: {"priority": "high"}}, Lane.STREAM, "urgent: priority=high is in its tags", None),
        ({TAGS: {"priority": "higher"}}, Lane.BATCH, WAITS, METADATA),
        ({TAGS: {"Priority": "high", "x": "priority=high"}}, Lane.BATCH, WAITS, METADATA),
        ({TAGS: {"stage": ""}}, Lane.STREAM, "urgent: stage=* is in its tags", None),
        ({TAGS: {}, METADATA: {}}, Lane.BATCH, WAITS, None),
        ({TAGS: {}, METADATA: {"feed": "live-1"}}, Lane.STREAM, "urgent: feed=live* is in its metadata", None),
        ({TAGS: {}, METADATA: {"priority": "high"}}, Lane.BATCH, WAITS, None),
        ({TAGS: GONE}, Lane.BATCH, f"{WAITS}; its tags were not read: gone (404)", METADATA),
        (
            {TAGS: GONE, METADATA: DENIED},
            Lane.BATCH,
            f"{WAITS}; its tags were not read: gone (404); its metadata were not read: access denied (403)",
            None,
        ),
        ({TAGS: DENIED, METADATA: {"feed": "live"}}, Lane.STREAM, "urgent: feed=live* is in its metadata", None),
    ],
)
def test_tags_are_asked_for_first_and_metadata_only_if_they_do_not_decide(
    attributes: dict[Attribute, Any], lane: Lane, reason: str, unread: Attribute | None
) -> None:
    assert decided(BOTH, attributes) == LaneDecision(
        lane, "orders", reason, unread, urgent=reason.startswith("urgent: ")
    )


@pytest.mark.parametrize(
    ("key", "size", "reason"),
    [
        ("orders/urgent/a.json", 100, "urgent: the key matches */urgent/*"),
        ("orders/a.json", 5, "urgent: its 5 bytes are within datasets.urgent.max_bytes (9)"),
        ("orders/a.csv", 100, "the name ends in none of"),
        ("clicks/a.json", 100, WAITS),
    ],
    ids=["key", "size", "ignored", "another dataset"],
)
def test_nothing_is_asked_for_where_cheaper_rules_decide(key: str, size: int, reason: str) -> None:
    decision = decided({**BOTH, "max_bytes": 9}, key=key, size=size)
    assert decision.unread is None
    assert decision.reason.startswith(reason)


def test_a_file_of_peak_hours_is_asked_for_as_well_and_falls_back_to_them() -> None:
    # The order of the rules is the same at all hours.
    before, unknown = decided(BOTH, now=FRIDAY), decided(BOTH, {TAGS: GONE, METADATA: {}}, now=FRIDAY)
    assert (before.lane, before.unread) == (Lane.STREAM, TAGS)
    assert (unknown.lane, unknown.reason) == (
        Lane.STREAM,
        "peak hours 08:00-20:00 UTC; its tags were not read: gone (404)",
    )


def test_values_with_an_equals_sign_are_compared_whole() -> None:
    assert decided({"tags": ["a=b=c"]}, {TAGS: {"a": "b=c"}}).lane == Lane.STREAM
