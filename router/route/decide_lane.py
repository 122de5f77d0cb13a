"""Which lane an arrival takes, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lake.dataset_rules import matching_rule
from lake.manifest import Lane
from lake.settings.checks import DATASET_NAME
from router.route.peak import peak_window

if TYPE_CHECKING:
    from datetime import datetime

    from lake.ledger import StreamRow
    from lake.manifest import ObjectVersion
    from lake.settings import DatasetRule, Settings

WAITS = "waits for the overnight run"


@dataclass(frozen=True, slots=True)
class LaneDecision:
    """Lane and dataset of an arrival; both None: the arrival is ignored."""

    lane: Lane | None
    dataset: str | None
    reason: str
    """Why this lane, or why the arrival is ignored; a sentence for people."""
    urgent: bool = False
    """Whether it goes before the other files of the stream lane."""


def decide_lane(arrival: ObjectVersion, settings: Settings, now: datetime, stream_health: StreamRow) -> LaneDecision:
    """The lane of an arrival at ``now`` (aware).

    In this order: ignored keys, urgent keys, files above ``stream.max_file_bytes``, peak hours of the dataset unless
    the stream spills; everything else waits for the overnight run.
    """
    ignored = _reason_to_ignore(arrival.key, settings)
    if ignored is not None:
        return LaneDecision(None, None, ignored)
    rule, dataset = matching_rule(arrival.key, settings.datasets)
    if rule is None:
        return LaneDecision(None, None, "no rule of [[datasets]] matches the key")
    if not DATASET_NAME.fullmatch(dataset):
        return LaneDecision(
            None,
            None,
            f"the folder {dataset!r} is not a valid dataset name: expected lower case letters, digits and underscore",
        )
    for pattern in settings.urgent.keys:
        if fnmatchcase(arrival.key, pattern):
            return LaneDecision(Lane.STREAM, dataset, f"urgent: the key matches {pattern}", urgent=True)
    lane, reason = _lane_of_others(arrival, rule, settings, now, stream_health)
    return LaneDecision(lane, dataset, reason)


def _reason_to_ignore(key: str, settings: Settings) -> str | None:
    if key.endswith("/"):
        return "a folder marker, not a file"
    if settings.input.suffix_of(key) is None:
        return f"the name ends in none of {', '.join(settings.input.suffixes)} (input.suffixes)"
    return None


def _lane_of_others(
    arrival: ObjectVersion, rule: DatasetRule, settings: Settings, now: datetime, stream_health: StreamRow
) -> tuple[Lane, str]:
    limit = settings.stream.max_file_bytes
    if limit and arrival.size > limit:
        return Lane.BATCH, f"larger than stream.max_file_bytes ({arrival.size} > {limit} bytes)"
    window = peak_window(settings.peak, settings.time_zone, now) if rule.peak else None
    if window is None:
        return Lane.BATCH, WAITS
    peak_hours = f"peak hours {window} {settings.time_zone}"
    if stream_health.spilling:
        return Lane.BATCH, f"{WAITS}: {peak_hours}, but the stream's backlog is above its high mark"
    return Lane.STREAM, peak_hours
