"""The figures as tables, for a terminal and for the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.aws_costs import DAY_BYTES, TERABYTE, WORKERS, cost, services
from bench.runner import WAYS
from bench.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.runner import Figure
    from bench.targets import Goal
    from lake.settings import PriceSettings

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of figures -->"
PART_NAMES = {
    "read": "read the file (page cache)",
    "parse_columns": "parse into columns",
    "write_none": "write Parquet, not compressed",
    "write_snappy": "write Parquet, snappy",
    "write_zstd": "write Parquet, zstd-1",
    "inflate_parse_columns": "inflate gzip, parse into columns",
}


def speed_table(figures: Sequence[Figure]) -> list[str]:
    """MB of NDJSON per second and core, a row for each shape."""
    lines = _table("MB/s per core", *[way.name for way in WAYS])
    for shape in _shapes(figures):
        row = [f"{figure.mb_per_second_per_core:.0f}" for figure in figures if figure.shape == shape]
        lines.append(_row(f"{shape} ({SHAPES[shape].about})", *row))
    return lines


def output_table(figures: Sequence[Figure]) -> list[str]:
    """Output size and memory."""
    lines = _table("output MB (memory MB)", *[way.name for way in WAYS])
    for shape in _shapes(figures):
        row = [_output(figure) for figure in figures if figure.shape == shape]
        lines.append(_row(shape, *row))
    return lines


def parts_table(parts: Mapping[str, Mapping[str, float]]) -> list[str]:
    """MB of NDJSON per second of one thread, part by part."""
    shapes = [shape for shape in parts if parts[shape]]
    lines = _table("part alone, one thread, MB/s", *shapes)
    for name, words in PART_NAMES.items():
        cells = [f"{parts[shape][name]:.0f}" if name in parts[shape] else "" for shape in shapes]
        if any(cells):
            lines.append(_row(words, *cells))
    compress = {
        shape: _by_difference(parts[shape]["write_zstd"], parts[shape]["write_none"])
        for shape in shapes
        if "write_zstd" in parts[shape]
    }
    if compress:
        lines.append(_row("compress, zstd-1 (by difference)", *[compress.get(shape, "") for shape in shapes]))
    if "gzip" in parts and "flat" in parts:
        inflate = _by_difference(parts["gzip"]["inflate_parse_columns"], parts["flat"]["parse_columns"])
        lines.append(_row("inflate gzip (by difference)", *[inflate if s == "gzip" else "" for s in shapes]))
    return lines


def goal_table(goals: Sequence[Goal]) -> list[str]:
    """What was asked for."""
    lines = _table("asked for", "measured", "wanted", "")
    return lines + [_row(g.what, g.measured, g.wanted, "reached" if g.reached else "NOT reached") for g in goals]


def dollar_table(figures: Sequence[Figure], price: PriceSettings) -> list[str]:
    """Calculated costs by both bounds."""
    network = price.mb_per_second_per_core
    lines = [
        f"Calculated, not run on AWS: a vCPU converts what a core did here (CPU), or gets {network:g} MB/s of input",
        "(network; assumed, the setting `price.mb_per_second_per_core`); the forecast is the larger. Of "
        f"{WORKERS} workers one is the driver: paid for, converting nothing.",
        "",
        *_table("calculated, US dollars", "CPU", "network", "forecast"),
    ]
    for figure in figures:
        if figure.way != "ours" or figure.shape not in ("flat", "nested"):
            continue
        for size, words in ((TERABYTE, "1 TB"), (DAY_BYTES, "a day of 338,000 files of 4 GB")):
            for service in services(price):
                bill = cost(size, figure.mb_per_second_per_core, network, service)
                cells = [_dollars(value) for value in (bill.cpu, bill.network, bill.forecast)]
                lines.append(_row(f"{figure.shape}, {words}, {service.name}", *cells))
    return lines


def whole(sections: Sequence[Sequence[str]]) -> str:
    """Sections with a blank line between them."""
    return "\n\n".join("\n".join(section) for section in sections)


def put_between(document: str, text: str) -> str:
    """The document with ``text`` in place of what stood between its markers.

    Raises
    ------
    ValueError
        A marker is missing.
    """
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document lacks the lines {BEGIN} and {END}: put them where the figures belong")
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"


def _by_difference(both: float, one: float) -> str:
    """The speed of the rest of what has the speed ``both``, of which a part has the speed ``one``."""
    return f"{1 / (1 / both - 1 / one):.0f}" if both < one else "inf"


def _output(figure: Figure) -> str:
    size = f"{figure.output_bytes / 1e6:.1f}"
    return size if figure.peak_bytes is None else f"{size} ({figure.peak_bytes / 1e6:.0f})"


def _dollars(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _shapes(figures: Sequence[Figure]) -> list[str]:
    return list(dict.fromkeys(figure.shape for figure in figures))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(*heads: str) -> list[str]:
    return [_row(*heads), "|---" + "|---:" * (len(heads) - 1) + "|"]
