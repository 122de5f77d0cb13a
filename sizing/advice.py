"""What to set after a calibration, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lake.engines.description import MIB
from lake.settings import ConvertSettings, PriceSettings
from lake.texts import format_count
from sizing.measure import Measurement

MEGABYTE = 1_000_000
TASK_MEMORY_BYTES = 300 * MEGABYTE
"""Memory of a task that the check of the worker types assumes (docs/deploy.md, "Memory of a worker")."""
MIN_ROW_GROUP_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting and the reason for its value."""

    group: str
    key: str
    value: float
    reason: str


def advise(found: Sequence[Measurement], settings: ConvertSettings) -> Iterator[Advice]:
    """Settings for such files; of each kind the last measurement counts, which is the one of the most input."""
    for kind in measured_kinds(found):
        yield _speed_advice(kind[-1])
    peak = max(item.peak_bytes for item in found)
    if peak > TASK_MEMORY_BYTES and settings.row_group_bytes // 2 >= MIN_ROW_GROUP_BYTES:
        yield Advice(
            "convert",
            "row_group_bytes",
            settings.row_group_bytes // 2,
            f"a task took {peak / MEGABYTE:.0f} MB, and workers have {TASK_MEMORY_BYTES / MEGABYTE:.0f} MB for each: "
            "smaller row groups take less",
        )


def _speed_advice(last: Measurement) -> Advice:
    network, speed = PriceSettings().mb_per_second_per_core, last.speed / MEGABYTE
    return Advice(
        "price",
        "compressed_mb_per_second_per_core" if last.compressed else "mb_per_second_per_core",
        round(min(speed, network), 1),
        f"the processor converts {speed:.0f} MB/s of such input per core, as stored; a vCPU is assumed to read "
        f"{network:g} MB/s from S3 and to be as fast as a core here",
    )


def measured_kinds(found: Sequence[Measurement]) -> list[list[Measurement]]:
    """Those of plain files, and those of compressed ones; without a kind that has none."""
    kinds = ([item for item in found if item.compressed is compressed] for compressed in (False, True))
    return [kind for kind in kinds if kind]


def toml_lines(advice: Sequence[Advice], stage: str) -> Iterator[str]:
    """A settings file with this advice, each value with its reason."""
    yield f'stage = "{stage}"'
    for group in dict.fromkeys(item.group for item in advice):
        yield ""
        yield f"[{group}]"
        for item in advice:
            if item.group == group:
                yield f"# {item.reason}"
                yield f"{item.key} = {item.value}"


def report_lines(found: Sequence[Measurement]) -> Iterator[str]:
    """Of each kind of files a line for each measurement, and what the last one says about the data; for people."""
    for kind in measured_kinds(found):
        yield f"{kind_name(kind[0])} files"
        yield from map(_line, kind)
        last = kind[-1]
        yield f"{last.inflated_bytes / max(last.stored_bytes, 1):.2f} bytes of NDJSON for each byte as stored"
        yield f"{format_count(last.rows, 'row')}, {format_count(last.columns, 'column')}"
        for reason, lines in sorted(last.rejects.items()):
            yield f"rejected: {format_count(lines, 'line')}, {reason}"


def kind_name(item: Measurement) -> str:
    """The kind of its files, for people."""
    return "compressed" if item.compressed else "plain"


def _line(item: Measurement) -> str:
    return (
        f"{item.stored_bytes / MEGABYTE:>8,.0f} MB  {item.seconds:>7.1f} s  {item.speed / MEGABYTE:>6.0f} MB/s per "
        f"core  output {item.output_ratio:>5.3f} of the NDJSON  memory of a task {item.peak_bytes / MEGABYTE:>5.0f} MB"
    )
