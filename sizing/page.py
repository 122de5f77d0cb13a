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
from lake.settings import EmrSettings, Settings, StreamSettings, load_settings
from router.estimate.stream_cluster import stream_cluster
from scripts.markdown_page import markdown_table, replace_between
from sizing.day import simulate_profile
from sizing.profile import profile_of_sizes
from sizing.report import Table, assumptions_table, nights_table, notes, options_table
from sizing.schedule import night_start, stream_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"
BEGIN_MARKER = "<!-- figures: written by python -m sizing.page --write -->"
END_MARKER = "<!-- end of figures -->"
SETTINGS = Path("settings/dev.toml")
PAIRS = (("10GB", "10MB"), ("2TB", "3.5MB"), ("100TB", "1GB"), ("1.5PB", "4.5GB"))
"""All files of a day together, and the size of each of them."""
NIGHT = "2026-11-18"
ON_EMR = StreamSettings(engine=Engine.EMR_SERVERLESS.value)
QUIET_STREAMS = (
    (StreamSettings(), EmrSettings()),
    (replace(ON_EMR, emr_min_executors=1), EmrSettings()),
    (ON_EMR, EmrSettings()),
    (ON_EMR, EmrSettings(architecture=ARM)),
)
"""Streaming jobs whose price is compared while no file arrives."""


def figures(log: Callable[[str], object]) -> list[str]:
    """Lines between the markers: what the command prints for each pair, and what all of it rests on."""
    settings, lines = load_settings(PAGE.parents[1] / SETTINGS), []
    for a_day, files_of in PAIRS:
        found = simulate_profile(profile_of_sizes(a_day, files_of), settings, log)
        command = f".venv/bin/hybrid-router simulate --a-day {a_day} --files-of {files_of}"
        lines += [f"### {_spaced(a_day)} a day in files of {_spaced(files_of)}", "", "```sh", command, "```", ""]
        table = options_table(found, settings.time_zone)
        lines += [f"{table.title}.", "", *_markdown(table), ""]
        lines += [*(f"- {note}" for note in notes(found, settings.time_zone)), ""]
        lines += [*_markdown(nights_table(found, settings.time_zone)), ""]
    lines += ["### A quiet stream", "", *_markdown(_quiet_streams(settings)), ""]
    return [*lines, "### What the figures rest on", "", *_markdown(assumptions_table(found))]


def _spaced(size: str) -> str:
    return f"{size[:-2]} {size[-2:]}"


def _quiet_streams(settings: Settings) -> Table:
    """What each engine bills while a streaming job waits for files."""
    window = stream_window(settings, night_start(settings, date.fromisoformat(NIGHT)))
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
