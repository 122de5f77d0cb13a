"""``python -m sizing.page --write``: the figures of docs/sizing.md; without ``--write`` it prints them."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lake.engines import Engine
from lake.settings import EmrSettings, Settings, StreamSettings
from lake.settings.emr import ARM
from router.estimate.stream_cluster import stream_cluster
from sizing.arrivals import ProfileArrivals
from sizing.day import simulate
from sizing.options import ALL_BATCH, ALL_STREAM, HYBRID
from sizing.profile import Profile, SizeShare
from sizing.report import NOTHING, format_bytes, format_seconds
from sizing.schedule import night_start, stream_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sizing.result import OptionResult, Simulation

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"
BEGIN_MARKER = "<!-- figures: written by python -m sizing.page --write -->"
END_MARKER = "<!-- end of figures -->"
GB, MB = 10**9, 10**6
URGENT_SHARE = 0.01
DAYS = (
    Profile(1_000, (SizeShare(10 * MB),), urgent_share=URGENT_SHARE),
    Profile(10_000, (SizeShare(100 * MB),), urgent_share=URGENT_SHARE),
    Profile(100_000, (SizeShare(GB),), urgent_share=URGENT_SHARE),
    Profile(338_000, (SizeShare(4_500 * MB),), urgent_share=URGENT_SHARE),
)
"""About 10 GB, 1 TB, 100 TB and 1.5 PB a day, by an even curve, on a Wednesday."""
ON_EMR = StreamSettings(engine=Engine.EMR_SERVERLESS.value)
QUIET_STREAMS = (
    (StreamSettings(), EmrSettings()),
    (replace(ON_EMR, emr_min_executors=1), EmrSettings()),
    (ON_EMR, EmrSettings()),
    (ON_EMR, EmrSettings(architecture=ARM)),
    (replace(ON_EMR, emr_driver_vcpus=1, emr_driver_gb=4), EmrSettings()),
    (replace(ON_EMR, emr_driver_vcpus=1, emr_driver_gb=4), EmrSettings(architecture=ARM)),
)
"""Streaming jobs whose price is compared while no file arrives."""
COLUMNS = (
    *("routing", "engine of the night", "in the stream", "p50, p95", "overnight", "p50, p95"),
    *("night ends", "$ a day", "$ a month", "$ a TB"),
)
SOON_SECONDS = 300.0
"""Latency (p95) of an option that is called soon."""


def figures(log: Callable[[str], object]) -> list[str]:
    """Lines between the markers."""
    settings = Settings("sizing")
    found = [_simulated(profile, settings, log) for profile in DAYS]
    lines = ["", *_choices(found), "", "### A quiet stream", "", *_quiet_streams(settings)]
    for day in found:
        lines += ["", f"### {format_bytes(day.bytes)} a day", "", *_options(day), "", *_changes(day)]
    lines += ["", "### What the figures rest on", "", *_assumptions(found[0]), ""]
    return lines


def replaced(page: str, lines: Iterable[str]) -> str:
    """The page with these lines between its markers."""
    before, _, rest = page.partition(BEGIN_MARKER)
    _, _, after = rest.partition(END_MARKER)
    return "\n".join([before + BEGIN_MARKER, *lines, END_MARKER + after])


def _simulated(profile: Profile, settings: Settings, log: Callable[[str], object]) -> Simulation:
    night = night_start(settings, date.fromisoformat(profile.date))
    arrivals = ProfileArrivals(profile, settings, night)
    return simulate(arrivals, settings, profile.gzip.ratio, profile.failures.share, log)


def _choices(days: Sequence[Simulation]) -> Iterator[str]:
    """The cheapest options of each day; one that is not in time is left out."""
    month = "$ a month"
    yield from _markdown(("input a day", "cheapest", month, "urgent files soon", month, "all files soon", month))
    for day in days:
        in_time = [option for option in day.options if option.night is None or option.night.fits]
        cells = [format_bytes(day.bytes)]
        for options in (
            in_time,
            [option for option in in_time if option.routing != ALL_BATCH and _is_soon(option)],
            [option for option in in_time if option.routing == ALL_STREAM and _is_soon(option)],
        ):
            best = min(options, key=lambda option: option.dollars.total, default=None)
            cells += [_name(best), f"{best.dollars.month:,.0f}"] if best else ["none", NOTHING]
        yield _row(cells)


def _quiet_streams(settings: Settings) -> Iterator[str]:
    """What each engine bills while a streaming job waits for files."""
    window = stream_window(settings, night_start(settings, date.fromisoformat(DAYS[0].date)))
    hours = [(end - begin) / timedelta(hours=1) for begin, end in ([window] if window else [])] + [24.0]
    yield from _markdown(("engine of the stream", "workers", "$ an hour", *(f"$ in {item:g} hours" for item in hours)))
    for stream, emr in QUIET_STREAMS:
        found = replace(settings, stream=stream, emr=emr)
        workers = stream_cluster(found)
        engine = f"{stream.engine}, {emr.architecture}" if stream.on_emr else f"{stream.engine}, {stream.worker_type}"
        driver = f"{stream.emr_driver_vcpus} vCPU, {stream.emr_driver_gb} GB" if stream.on_emr else stream.worker_type
        kept = f", and {workers.min_executors} executor" if workers.min_executors else " alone"
        dollars = workers.quiet_dollars
        yield _row(
            (engine, f"a driver of {driver}{kept}", f"{dollars:.3f}", *(f"{item * dollars:.2f}" for item in hours))
        )


def _is_soon(option: OptionResult) -> bool:
    p95 = option.stream.latency_seconds.p95
    return p95 is not None and p95 <= SOON_SECONDS


def _name(option: OptionResult) -> str:
    return f"{option.routing}, {option.engine}" if option.engine else option.routing


def _options(day: Simulation) -> Iterator[str]:
    yield f"{day.files:,} files."
    yield ""
    yield from _markdown(COLUMNS)
    for option in day.options:
        stream, batch, dollars = option.stream, option.batch, option.dollars
        yield _row(
            (
                option.routing,
                option.engine or NOTHING,
                format_bytes(stream.bytes) if stream.files else NOTHING,
                _latencies(option, stream=True),
                format_bytes(batch.bytes) if batch.files else NOTHING,
                _latencies(option, stream=False),
                _night_end(option),
                f"{dollars.total:,.2f}",
                f"{dollars.month:,.0f}",
                f"{dollars.per_terabyte:,.2f}",
            )
        )


def _latencies(option: OptionResult, *, stream: bool) -> str:
    lane = option.stream if stream else option.batch
    found = lane.latency_seconds
    return f"{format_seconds(found.p50)}, {format_seconds(found.p95)}" if lane.files else NOTHING


def _night_end(option: OptionResult) -> str:
    if option.night is None:
        return NOTHING
    end = datetime.fromisoformat(option.night.end).astimezone(UTC)
    late = "" if option.night.fits else f", {format_seconds(60 * option.night.late_minutes)} late"
    return f"{end:%H:%M}{late}"


def _changes(day: Simulation) -> Iterator[str]:
    stream = next(option for option in day.options if option.routing == ALL_STREAM)
    hybrid = next(option for option in day.options if option.routing == HYBRID)
    yield f"`{ALL_STREAM}` has {', '.join(stream.changes)}. `{HYBRID}` spilled {hybrid.spilled_files:,} files."


def _assumptions(day: Simulation) -> Iterator[str]:
    yield from _markdown(("value", "what", "known", "source"))
    for item in day.assumptions:
        yield _row((f"{item.value:g} {item.unit}".strip(), item.name, item.basis.value, item.source))


def _markdown(header: Sequence[str]) -> Iterator[str]:
    yield _row(header)
    yield "|" + "---|" * len(header)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    """Print the figures, or write them into the page."""
    lines = figures(lambda text: sys.stderr.write(f"{text}\n"))
    if "--write" in arguments:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), lines), encoding="utf-8")
    else:
        sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
