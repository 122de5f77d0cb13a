"""``python -m sizing.page --write``: the figures of docs/sizing.md; without ``--write`` it prints them."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lake.engines import Engine
from lake.engines.emr_serverless import DRIVER_GB, DRIVER_VCPUS
from lake.engines.workers import ARM
from lake.format_values import format_size
from lake.settings import EmrSettings, Settings, StreamSettings
from router.estimate.stream_cluster import stream_cluster
from scripts.markdown_page import markdown_table, replace_between
from sizing.arrivals import ProfileArrivals
from sizing.day import simulate
from sizing.options import ALL_BATCH, ALL_STREAM
from sizing.profile import Profile, SizeShare
from sizing.report import NOTHING, Table, assumptions_table, notes, options_table
from sizing.schedule import night_start, stream_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sizing.result import OptionResult, Simulation

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"
BEGIN_MARKER = "<!-- figures: written by python -m sizing.page --write -->"
END_MARKER = "<!-- end of figures -->"
GB, MB = 10**9, 10**6
DAYS = tuple(
    Profile(files, (SizeShare(size),), urgent_share=0.01)
    for files, size in ((1_000, 10 * MB), (10_000, 100 * MB), (100_000, GB), (338_000, 4_500 * MB))
)
"""About 10 GB, 1 TB, 100 TB and 1.5 PB a day, by an even curve, on a Wednesday."""
ON_EMR = StreamSettings(engine=Engine.EMR_SERVERLESS.value)
QUIET_STREAMS = (
    (StreamSettings(), EmrSettings()),
    (replace(ON_EMR, emr_min_executors=1), EmrSettings()),
    (ON_EMR, EmrSettings()),
    (ON_EMR, EmrSettings(architecture=ARM)),
)
"""Streaming jobs whose price is compared while no file arrives."""
SOON_SECONDS = 300.0
"""Latency (p95) of an option that is called soon."""


def figures(log: Callable[[str], object]) -> list[str]:
    """Lines between the markers."""
    settings = Settings("sizing")
    found = [_simulated(profile, settings, log) for profile in DAYS]
    lines = [*_markdown(_choices(found)), "", "### A quiet stream", "", *_markdown(_quiet_streams(settings))]
    for day in found:
        lines += ["", f"### {format_size(day.bytes)} a day", "", f"{day.files:,} files.", ""]
        lines += _markdown(options_table(day, settings.time_zone))
        lines += ["", *(f"- {note}" for note in notes(day, settings.time_zone) if not note.startswith(ALL_BATCH))]
    return [*lines, "", "### What the figures rest on", "", *_markdown(assumptions_table(found[0]))]


def _simulated(profile: Profile, settings: Settings, log: Callable[[str], object]) -> Simulation:
    night = night_start(settings, date.fromisoformat(profile.date))
    arrivals = ProfileArrivals(profile, settings, night)
    return simulate(arrivals, settings, profile.gzip.ratio, profile.failures.share, log)


def _choices(days: Sequence[Simulation]) -> Table:
    """The cheapest options of each day; one that is not in time is left out."""
    month, rows = "$ a month", []
    for day in days:
        in_time = [option for option in day.options if option.night is None or option.night.fits]
        soon = [option for option in in_time if option.routing != ALL_BATCH and _is_soon(option)]
        row = [format_size(day.bytes)]
        for options in (in_time, soon, [option for option in soon if option.routing == ALL_STREAM]):
            best = min(options, key=lambda option: option.dollars.total, default=None)
            row += (
                [", ".join(filter(None, (best.routing, best.engine))), f"{best.dollars.month:,.0f}"]
                if best
                else ["none", NOTHING]
            )
        rows.append(row)
    return Table("", ("input a day", "cheapest", month, "urgent files soon", month, "all files soon", month), (), rows)


def _is_soon(option: OptionResult) -> bool:
    p95 = option.stream.latency_seconds.p95
    return p95 is not None and p95 <= SOON_SECONDS


def _quiet_streams(settings: Settings) -> Table:
    """What each engine bills while a streaming job waits for files."""
    window = stream_window(settings, night_start(settings, date.fromisoformat(DAYS[0].date)))
    hours = [(end - begin) / timedelta(hours=1) for begin, end in ([window] if window else [])] + [24.0]
    rows = []
    for stream, emr in QUIET_STREAMS:
        workers = stream_cluster(replace(settings, stream=stream, emr=emr))
        engine = f"{stream.engine}, {emr.architecture if stream.on_emr else stream.worker_type}"
        driver = f"{DRIVER_VCPUS} vCPU, {DRIVER_GB} GB" if stream.on_emr else stream.worker_type
        kept = f", and {workers.min_executors} executor" if workers.min_executors else " alone"
        prices = [f"{item * workers.quiet_dollars:.2f}" for item in hours]
        rows.append((engine, f"a driver of {driver}{kept}", f"{workers.quiet_dollars:.3f}", *prices))
    names = ("engine of the stream", "workers", "$ an hour", *(f"$ in {item:g} hours" for item in hours))
    return Table("", names, (), rows)


def _markdown(table: Table) -> list[str]:
    return markdown_table(table.names, table.numbers, table.rows)


def main(arguments: Sequence[str]) -> int:
    """Print the figures, or write them into the page."""
    text = "\n".join(figures(lambda text: sys.stderr.write(f"{text}\n")))
    if "--write" in arguments:
        page = replace_between(PAGE.read_text(encoding="utf-8"), text, BEGIN_MARKER, END_MARKER)
        PAGE.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
