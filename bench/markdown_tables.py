"""The figures as Markdown tables, for a terminal and for docs/performance.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.aws_costs import DAY_BYTES, TERABYTE, WORKERS, calculate_cost, compute_services
from bench.competitors import COMPETITORS, MAIN_SHAPES, PRODUCT
from bench.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.figure import Figure
    from bench.targets import Target
    from lake.settings import PriceSettings

BEGIN_MARKER = "<!-- figures: written by make bench -->"
END_MARKER = "<!-- end of figures -->"
STEP_NAMES = {
    "read": "read the file (page cache)",
    "parse_columns": "parse into columns",
    "write_none": "write Parquet, uncompressed",
    "write_snappy": "write Parquet, snappy",
    "write_zstd": "write Parquet, zstd-1",
    "inflate_parse_columns": "inflate gzip, parse into columns",
}


def speed_table(figures: Sequence[Figure]) -> list[str]:
    """MB of NDJSON per second and core: a row for each shape, a column for each competitor."""
    lines = _table("MB/s per core", *[competitor.name for competitor in COMPETITORS])
    for shape in _shapes(figures):
        row = [f"{figure.mb_per_second_per_core:.0f}" for figure in figures if figure.shape == shape]
        lines.append(_row(f"{shape} ({SHAPES[shape].description})", *row))
    return lines


def output_table(figures: Sequence[Figure]) -> list[str]:
    """Output size and peak memory, both in MB: a row for each shape, a column for each competitor."""
    lines = _table("output MB (memory MB)", *[competitor.name for competitor in COMPETITORS])
    for shape in _shapes(figures):
        row = [_output(figure) for figure in figures if figure.shape == shape]
        lines.append(_row(shape, *row))
    return lines


def steps_table(steps: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Each step alone on one thread; ``steps`` are MB of NDJSON per second, by shape and step.

    The speed of a step that cannot run alone is the difference of two measurements.
    """
    shapes = [shape for shape in steps if steps[shape]]
    lines = _table("step alone, one thread, MB/s", *shapes)
    for step, name in STEP_NAMES.items():
        cells = [f"{steps[shape][step]:.0f}" if step in steps[shape] else "" for shape in shapes]
        if any(cells):
            lines.append(_row(name, *cells))
    compress = {
        shape: _by_difference(steps[shape]["write_zstd"], steps[shape]["write_none"])
        for shape in shapes
        if "write_zstd" in steps[shape]
    }
    if compress:
        lines.append(_row("compress, zstd-1 (by difference)", *[compress.get(shape, "") for shape in shapes]))
    if "gzip" in steps and "flat" in steps:
        inflate = _by_difference(steps["gzip"]["inflate_parse_columns"], steps["flat"]["parse_columns"])
        cells = [inflate if shape == "gzip" else "" for shape in shapes]
        lines.append(_row("inflate gzip (by difference)", *cells))
    return lines


def targets_table(targets: Sequence[Target]) -> list[str]:
    """Each metric with its target."""
    lines = _table("metric", "measured", "target", "result")
    for target in targets:
        lines.append(_row(target.metric, target.measured, target.target, "met" if target.met else "NOT met"))
    return lines


def costs_table(figures: Sequence[Figure], price: PriceSettings) -> list[str]:
    """Calculated costs of hybrid-router on the main shapes, as limited by the CPU and by the network."""
    network = price.mb_per_second_per_core
    lines = [
        "Calculated, not measured on AWS. CPU: a vCPU converts as fast as a core did here. Network: a vCPU reads",
        f"{network:g} MB/s of input (assumed: the setting `price.mb_per_second_per_core`). The forecast is the larger",
        f"of both. One of {WORKERS} workers is the driver: it is billed and converts nothing. Prices: {price.source}.",
        "",
        *_table("calculated, US dollars", "CPU", "network", "forecast"),
    ]
    for figure in figures:
        if figure.competitor != PRODUCT or figure.shape not in MAIN_SHAPES:
            continue
        for size, amount in ((TERABYTE, "1 TB"), (DAY_BYTES, "a day of 338,000 files of 4 GB")):
            for service in compute_services(price):
                cost = calculate_cost(size, figure.mb_per_second_per_core, network, service)
                cells = [_dollars(value) for value in (cost.cpu, cost.network, cost.forecast)]
                lines.append(_row(f"{figure.shape}, {amount}, {service.name}", *cells))
    return lines


def join_sections(sections: Sequence[Sequence[str]]) -> str:
    """Sections of lines with a blank line between them."""
    return "\n\n".join("\n".join(section) for section in sections)


def replace_figures(document: str, text: str) -> str:
    """The document with the benchmark's ``text`` between its markers; raises what ``replace_between`` raises."""
    return replace_between(document, text, BEGIN_MARKER, END_MARKER)


def replace_between(document: str, text: str, begin_marker: str, end_marker: str) -> str:
    """The document with ``text`` between two markers, instead of what was there.

    Raises
    ------
    ValueError
        A marker is missing.
    """
    head, begin, rest = document.partition(begin_marker)
    _, end, tail = rest.partition(end_marker)
    if not begin or not end:
        raise ValueError(
            f"the document lacks the lines {begin_marker} and {end_marker}: add them where the figures belong"
        )
    return f"{head}{begin_marker}\n\n{text}\n\n{end_marker}{tail}"


def _by_difference(both: float, first: float) -> str:
    """The speed of the second of two steps, from the speed of ``both`` together and of the ``first`` alone."""
    return f"{1 / (1 / both - 1 / first):.0f}" if both < first else "inf"


def _output(figure: Figure) -> str:
    size = f"{figure.output_bytes / 1e6:.1f}"
    return size if figure.peak_bytes is None else f"{size} ({figure.peak_bytes / 1e6:.0f})"


def _dollars(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _shapes(figures: Sequence[Figure]) -> list[str]:
    return list(dict.fromkeys(figure.shape for figure in figures))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(*headings: str) -> list[str]:
    return [_row(*headings), "|---" + "|---:" * (len(headings) - 1) + "|"]
