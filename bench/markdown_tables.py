"""The figures as Markdown tables, for a terminal and for docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.competitors import COMPETITORS
from bench.figure import Figure
from bench.lake_queries import WRITERS
from bench.shapes import SHAPES
from bench.targets import Target
from scripts.markdown_page import markdown_table, replace_between

BEGIN_MARKER = "<!-- figures: written by make bench -->"
END_MARKER = "<!-- end of figures -->"
LAKES_BEGIN_MARKER = "<!-- lakes: written by make bench -->"
LAKES_END_MARKER = "<!-- end of lakes -->"


def speed_table(figures: Sequence[Figure]) -> list[str]:
    """MB of NDJSON per second and core: a row for each shape, a column for each competitor."""
    rows = [
        (f"{shape} ({SHAPES[shape].description})", *(f"{item.mb_per_second_per_core:.0f}" for item in of_shape))
        for shape, of_shape in _by_shape(figures).items()
    ]
    return markdown_table(["MB/s per core"], [competitor.name for competitor in COMPETITORS], rows)


def output_table(figures: Sequence[Figure]) -> list[str]:
    """Output size and peak memory, both in MB: a row for each shape, a column for each competitor."""
    rows = [(shape, *map(_output, of_shape)) for shape, of_shape in _by_shape(figures).items()]
    return markdown_table(["output MB (memory MB)"], [competitor.name for competitor in COMPETITORS], rows)


def outcome_of_targets(targets: Sequence[Target]) -> list[str]:
    """A sentence, and each target that was missed."""
    missed = [item for item in targets if not item.met]
    number = f"{len(targets) - len(missed)} of {len(targets)}"
    met = f"{number} targets are met (`bench/targets.py`; `build/bench/results.json` has each)."
    return [met, *(f"- NOT met: {item.metric}: {item.measured}, target {item.target}" for item in missed)]


def lake_sizes_table(lakes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """MB of each lake: a row for each shape, a column for each writer."""
    rows = [
        (shape, *(f"{size / 1e6:.1f}" for size in (lake["ndjson_bytes"], *map(lake["bytes"].__getitem__, WRITERS))))
        for shape, lake in lakes.items()
    ]
    return markdown_table(["lake, MB"], ["NDJSON", *WRITERS], rows)


def lake_queries_table(lakes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Milliseconds of the five queries together: a row for each shape and engine, a column for each writer's lake."""
    rows = [
        (
            f"{shape}, {engine}",
            *(f"{1000 * sum(of_query[writer] for of_query in seconds.values()):.0f}" for writer in WRITERS),
        )
        for shape, lake in lakes.items()
        for engine, seconds in lake["seconds"].items()
    ]
    return markdown_table(["ms of five queries on the lake of"], WRITERS, rows)


def join_sections(sections: Sequence[Sequence[str]]) -> str:
    """Sections of lines with a blank line between them."""
    return "\n\n".join("\n".join(section) for section in sections)


def replace_figures(document: str, text: str) -> str:
    """The document with the benchmark's ``text`` between its markers; raises what ``replace_between`` raises."""
    return replace_between(document, text, BEGIN_MARKER, END_MARKER)


def replace_lakes(document: str, text: str) -> str:
    """The same for sizes and queries."""
    return replace_between(document, text, LAKES_BEGIN_MARKER, LAKES_END_MARKER)


def _output(figure: Figure) -> str:
    size = f"{figure.output_bytes / 1e6:.1f}"
    return size if figure.peak_bytes is None else f"{size} ({figure.peak_bytes / 1e6:.0f})"


def _by_shape(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.shape, []).append(figure)
    return found
