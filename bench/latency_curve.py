"""``python -m bench.latency_curve --write``: latency against requests in docs/deploy.md; without it, the table.

Nothing is measured on AWS: the latency is that of the simulator, the requests are those that
tests/load/test_request_counts.py counts, and the prices are listed ones.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.markdown_tables import END_MARKER, replace_between
from cli.cost_estimate import Units, estimate_shares
from lake.ledger import CostShare
from lake.settings import DatasetRule, PeakSettings, Settings
from lake.settings.quota import QuotaSettings
from simulate.arrivals import ProfileArrivals
from simulate.day import route_day
from simulate.profile import Profile, SizeShare
from simulate.schedule import night_start
from simulate.speed import Speed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulate.histogram import Latencies

PAGE = Path(__file__).parents[1] / "docs" / "deploy.md"
BEGIN_MARKER = "<!-- figures: written by python -m bench.latency_curve --write -->"
MILLION = 1_000_000
FILES = 200_000
FILE_BYTES = 3_500_000
URGENT_SHARE = 0.01
WORKERS = 10
RATIO = 8.0
PEAK_HOUR = tuple(float(hour == 12) for hour in range(24))
STEPS = ((1, 1), (2, 5), (3, 5), (5, 5), (5, 10), (5, 30), (10, 30), (20, 30), (60, 60))
"""Seconds of the event window and of the trigger."""
COLUMNS = ("`input.event_window_seconds`", "`stream.trigger_seconds`", "urgent p50, p95", "peak p50, p95")
COSTS = ("manifests an hour", "write units", "PUT requests", "$ for a million files")


class Step(NamedTuple):
    """What one pair of settings gives."""

    window: int
    trigger: int
    urgent: Latencies
    peak: Latencies
    manifests: int


def measure_step(window: int, trigger: int) -> Step:
    """An hour of the simulator's peak."""
    settings = Settings(
        "curve",
        datasets=(DatasetRule("orders", "orders/"),),
        peak=PeakSettings(hours=("00:00-24:00",)),
        quota=QuotaSettings(dpus=500),
    )
    settings = replace(
        settings,
        input=replace(settings.input, event_window_seconds=window),
        stream=replace(settings.stream, trigger_seconds=trigger, max_workers=WORKERS),
    )
    profile = Profile(FILES, (SizeShare(FILE_BYTES),), curve=PEAK_HOUR, urgent_share=URGENT_SHARE)
    arrivals = ProfileArrivals(profile, settings, night_start(settings, date.fromisoformat(profile.date)))
    day = route_day(arrivals, settings, Speed.of(settings, RATIO), 0.0)
    assert not day.waiting, "a file went to the batch lane: the cluster is too small for the curve"
    return Step(window, trigger, day.stream.urgent_latencies, day.stream.latencies, day.stream_manifests)


def table() -> Iterator[str]:
    """Lines of Markdown."""
    yield "| " + " | ".join((*COLUMNS, *COSTS)) + " |"
    yield "|" + "---:|" * len((*COLUMNS, *COSTS))
    for window, trigger in STEPS:
        yield row(measure_step(window, trigger))


def row(step: Step) -> str:
    """A line of the table."""
    return "| " + " | ".join(_cells(step)) + " |"


def _cells(step: Step) -> Iterator[str]:
    units, millions = Units(), FILES / MILLION
    # A manifest of a short window has less input than an output file takes.
    share = CostShare("orders", 0, FILES * FILE_BYTES, FILES, step.manifests, objects=step.manifests)
    found = estimate_shares([share])
    yield from (str(step.window), str(step.trigger), _percentiles(step.urgent), _percentiles(step.peak))
    yield f"{step.manifests:,}"
    yield f"{(FILES * units.writes_of_file + step.manifests * units.writes_of_manifest) / millions:,.0f}"
    yield f"{step.manifests * units.s3_writes_of_manifest / millions:,.0f}"
    yield f"{found.total / millions:.2f}"


def _percentiles(found: Latencies) -> str:
    return ", ".join(f"{found.percentile(share):.0f} s" for share in (0.5, 0.95))


def main(arguments: list[str]) -> None:
    """Print the table, or write it."""
    lines = list(table())
    print("\n".join(lines))
    if "--write" in arguments:
        text = replace_between(PAGE.read_text(encoding="utf-8"), "\n".join(lines), BEGIN_MARKER, END_MARKER)
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
