"""How small a manifest's Parquet will be: a little of its input, converted beforehand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ndjson_arrow import Reader

from transform.parquet_writer import OpenFile
from transform.read_ahead import ranges_of
from transform.source import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ndjson_arrow import Batch

    from lake.settings import ConvertSettings
    from transform.source import Source
    from transform.task_model import Split

PLACES = 4
BYTES = 8 << 20
"""Read at all of these places together: as many as several pages of each column of a usual record take."""
PIECE_BYTES = 64 << 10
"""Of a compressed file: whatever it inflates to, one piece of it goes beyond what a reader holds."""


def output_ratio(source: Source, splits: Sequence[Split], settings: ConvertSettings) -> float | None:
    """Parquet bytes per stored input byte, from a few places of the splits; None: there was no row.

    Raises
    ------
    TransientError
        Reading did not work now.
    """
    reader = Reader(column_limit=settings.column_limit, max_line_bytes=settings.max_line_bytes)
    read = 0
    sampled = dict.fromkeys(splits[len(splits) * number // PLACES] for number in range(PLACES))
    for number, split in enumerate(sampled):
        reader.open(str(number), start=split.start)
        for piece in _pieces(source, split, BYTES // len(sampled)):
            reader.feed(piece)
            read += len(piece)
            if (batch := reader.read()) is not None:
                return _parquet_bytes(batch, settings) / read
        reader.close()
    last = reader.flush()
    return None if last is None else _parquet_bytes(last, settings) / read


def _pieces(source: Source, split: Split, most: int) -> Iterator[memoryview]:
    ranges = ranges_of(split, 0, most)
    if not ranges:
        return  # an empty file
    try:
        data = source.fetch(split.file, ranges[0].start, ranges[0].end)
    except UnreadableFileError:
        return  # the task that reads it says why
    with memoryview(data) as view:
        for start in range(0, len(view), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]


def _parquet_bytes(batch: Batch, settings: ConvertSettings) -> int:
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
        file = OpenFile(Path(folder) / "sample.parquet", settings)
        file.write(batch)
        file.close()
        return file.path.stat().st_size
