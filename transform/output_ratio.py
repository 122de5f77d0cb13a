"""How large a manifest's Parquet will be per input byte, from a sample that is converted beforehand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ndjson_arrow import Reader

from transform.chunk_sample import ChunkSample, Sampling
from transform.parquet_writer import OpenFile
from transform.read_ahead import ranges_of
from transform.source import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ndjson_arrow import Batch

    from lake.settings import ConvertSettings
    from transform.source import Source
    from transform.task_model import Split

SAMPLED_PLACES = 4
SAMPLE_BYTES = 8 << 20
"""Read at all places together: enough for several pages of each column of a usual record."""
PIECE_BYTES = 64 << 10
"""Bytes that the reader is fed at once. Small, because a compressed file may expand a thousand times: the sample ends
with the piece that fills the reader's first batch."""


def output_ratio(source: Source, splits: Sequence[Split], settings: ConvertSettings) -> float | None:
    """Parquet bytes per stored input byte, from a few places of the splits; None: the sample has no row.

    Raises
    ------
    TransientError
        The input could not be read now.
    """
    reader = Reader(column_limit=settings.column_limit, max_line_bytes=settings.max_line_bytes)
    read_bytes = 0
    sampled = dict.fromkeys(splits[len(splits) * number // SAMPLED_PLACES] for number in range(SAMPLED_PLACES))
    for number, split in enumerate(sampled):
        reader.open(str(number), start=split.start)
        for piece in _pieces(source, split, SAMPLE_BYTES // len(sampled)):
            reader.feed(piece)
            read_bytes += len(piece)
            if (batch := reader.read()) is not None:
                return _parquet_bytes(batch, settings) / read_bytes
        reader.close()
    rest = reader.flush()
    return None if rest is None else _parquet_bytes(rest, settings) / read_bytes


def _pieces(source: Source, split: Split, max_bytes: int) -> Iterator[memoryview]:
    ranges = ranges_of(split, 0, max_bytes)
    if not ranges:
        return  # The file is empty.
    try:
        data = source.fetch(split.file, ranges[0].start, ranges[0].end)
    except UnreadableFileError:
        return  # The task that reads the file reports the reason.
    with memoryview(data) as view:
        for start in range(0, len(view), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]


def _parquet_bytes(batch: Batch, settings: ConvertSettings) -> int:
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
        file = OpenFile(Path(folder) / "sample.parquet", settings, ChunkSample(Sampling(), 0))
        file.write(batch)
        file.close()
        return file.path.stat().st_size
