"""The files of the day, and the expected outcome of each line. This module does not know how the product converts."""

import gzip
import json
from dataclasses import dataclass
from enum import StrEnum

LINES = 20
"""Per file."""
REJECTED_EACH, BLANK_EACH, GZIP_EACH = 40, 50, 10
"""One in this number of files has a line that is not JSON, has a blank line, or is compressed."""
REPAIR = b"}"
"""What a person appends to a rejected line."""


class Part(StrEnum):
    """How a file arrives, and what happens to it."""

    PEAK = "peak"
    """In peak hours, before the stream lane has too much."""
    SPILLED = "spilled"
    """In peak hours, while it has too much."""
    URGENT = "urgent"
    WAITING = "waiting"
    """Outside peak hours: waits for the night."""
    PROMOTED = "promoted"
    """Waits for the night until a person makes it urgent."""
    DENIED = "denied"
    """The jobs may not read it until a person lets them."""
    MISSED = "missed"
    """S3 sends no event."""
    GONE = "gone"
    """It is deleted before it is read, put again, and reprocessed."""
    DAMAGED = "damaged"
    """It is cut off, and a person repairs it."""


FOLDERS = {
    Part.PEAK: "clicks",
    Part.SPILLED: "clicks/spilled",
    Part.URGENT: "orders/urgent",
    Part.WAITING: "orders",
    Part.PROMOTED: "orders/promoted",
    Part.DENIED: "invoices",
    Part.MISSED: "returns",
    Part.GONE: "orders/gone",
    Part.DAMAGED: "orders/damaged",
}
"""The first folder of a key is its dataset."""
SHARES = {
    Part.PEAK: 0.3,
    Part.SPILLED: 0.2,
    Part.URGENT: 0.06,
    Part.PROMOTED: 0.02,
    Part.DENIED: 0.1,
    Part.MISSED: 0.04,
}
"""Shares of all files; GONE and DAMAGED are one each, and the rest is WAITING."""
MIN_DATASETS = len({folder.partition("/")[0] for folder in FOLDERS.values()})
"""Further ones share the files that wait for the night."""


@dataclass(frozen=True, slots=True)
class DayFile:
    key: str
    part: Part
    body: bytes
    rows: tuple[str, ...]
    """Rows of the lake from its lines, as JSON with sorted keys."""
    rejected: tuple[bytes, ...]
    """Lines that do not become rows, and stay in the quarantine."""
    repaired: tuple[str, ...]
    """Rows from these lines after a person has repaired them."""

    @property
    def dataset(self) -> str:
        return self.key.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Day:
    files: tuple[DayFile, ...]

    @property
    def datasets(self) -> list[str]:
        """Names of all datasets, sorted."""
        return sorted({file.dataset for file in self.files})

    @property
    def tables(self) -> list[str]:
        """The datasets that have an Iceberg table: every second one, including the dataset of the peak files."""
        return self.datasets[::2]

    def of(self, *parts: Part) -> list[DayFile]:
        """The files of these parts, in the order of their keys."""
        return [file for file in self.files if file.part in parts]

    def one(self, part: Part) -> DayFile:
        (file,) = self.of(part)
        return file


def make_day(files: int, datasets: int = MIN_DATASETS) -> Day:
    counts = {part: round(files * share) for part, share in SHARES.items()} | {Part.GONE: 1, Part.DAMAGED: 1}
    counts[Part.WAITING] = files - sum(counts.values())
    parts = [part for part in Part for _ in range(counts[part])]
    waiting = [FOLDERS[Part.WAITING], *(f"waiting_{number:03}" for number in range(datasets - MIN_DATASETS))]
    return Day(
        tuple(
            _make_file(number, part, waiting[number % len(waiting)] if part == Part.WAITING else FOLDERS[part])
            for number, part in enumerate(parts)
        )
    )


def _make_file(number: int, part: Part, folder: str) -> DayFile:
    compressed = part == Part.DAMAGED or number % GZIP_EACH == 0
    key = f"{folder}/{number:06}.ndjson{'.gz' if compressed else ''}"
    lines = [_line(key, line) for line in range(LINES)]
    rows = [_row(key, line) for line in range(LINES)]
    rejected, repaired = [], []
    # Only the night after the repair reads the denied files.
    if number % REJECTED_EACH == 0 and part not in (Part.DENIED, Part.GONE, Part.DAMAGED):
        broken = f'{{"id": "{key}#broken", "n": {number}'
        lines.insert(number % LINES, broken)
        rejected.append(broken.encode())
        repaired.append(_as_row({"id": f"{key}#broken", "n": str(number)}))
    if number % BLANK_EACH == 0:
        lines.insert(1, "")
    plain = "".join(f"{line}\n" for line in lines).encode()
    body = gzip.compress(plain, mtime=0) if compressed else plain
    return DayFile(key, part, body, tuple(rows), tuple(rejected), tuple(repaired))


def _line(key: str, line: int) -> str:
    return (
        f'{{"id": "{key}#{line}", "n": {line}, "price": {line}.10, "who": "Größe Ω{line}", "tags": {{"a": [1,  2]}}}}'
    )


def _row(key: str, line: int) -> str:
    """Numbers and objects are the characters in the file."""
    values = {"id": f"{key}#{line}", "n": str(line), "price": f"{line}.10", "who": f"Größe Ω{line}"}
    return _as_row({**values, "tags": '{"a": [1,  2]}'})


def _as_row(values: dict[str, str]) -> str:
    return json.dumps(values, sort_keys=True)
