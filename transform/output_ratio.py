"""How large a manifest's Parquet will be per input byte, from a sample that is converted beforehand."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ndjson_arrow import Reader

from lake.ledger import DatasetMeasurement
from transform.chunk_sample import ChunkSample, Sampling
from transform.parquet_writer import OpenFile
from transform.read_ahead import ranges_of
from transform.source import DeniedFileError, UnreadableFileError

if TYPE_CHECKING:
    from lake.settings import ConvertSettings
    from transform.clients import InputRanges
    from transform.task_model import Split, SplitResult, TaskResult


SAMPLED_PLACES = 4
SAMPLE_BYTES = 8 << 20
"""Read at all places together: enough for several pages of each column of a usual record."""
PIECE_BYTES = 8 << 10
"""Bytes that the reader is fed at once. Small, because a compressed file may expand a thousand times: the sample ends
with the piece that fills it."""
BATCH_BYTES = 4 << 20
"""Columns of this size are encoded and compressed, as in a task: the driver never holds more of them."""
MAX_BATCHES = 8
"""Batches of the whole sample."""


def output_ratio(source: InputRanges, splits: Sequence[Split], settings: ConvertSettings) -> float | None:
    """Parquet bytes per stored input byte, from a few places of the splits; None: the sample has no row.

    Raises
    ------
    TransientError
        The input could not be read now.
    """
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
        path = Path(folder) / "sample.parquet"
        file = OpenFile(path, settings, ChunkSample(Sampling(), 0))
        read_bytes = _write_sample(file, source, splits, settings)
        if not file.rows:
            return None
        file.close()
        return path.stat().st_size / read_bytes


def _write_sample(file: OpenFile, source: InputRanges, splits: Sequence[Split], settings: ConvertSettings) -> int:
    """The bytes of the input that were read for the rows of ``file``."""
    reader = Reader(
        column_limit=settings.column_limit,
        max_line_bytes=settings.max_line_bytes,
        concatenated=settings.concatenated,
        flush_bytes=BATCH_BYTES,
        reject_sample_count=0,
    )
    read_bytes = batches = 0
    sampled = dict.fromkeys(splits[len(splits) * number // SAMPLED_PLACES] for number in range(SAMPLED_PLACES))
    for number, split in enumerate(sampled):
        reader.open(str(number), start=split.start)
        for piece in _pieces(source, split, SAMPLE_BYTES // len(sampled)):
            reader.feed(piece)
            read_bytes += len(piece)
            while (batch := reader.read()) is not None:
                file.write(batch)
                batches += 1
                if batches == MAX_BATCHES:
                    return read_bytes
            if reader.done:
                break
        reader.close()
    rest = reader.flush()
    if rest is not None:
        file.write(rest)
    return read_bytes


def _pieces(source: InputRanges, split: Split, max_bytes: int) -> Iterator[memoryview]:
    ranges = ranges_of(split, 0, max_bytes)
    if not ranges:
        return  # The file is empty.
    try:
        data = source.fetch(split.file, ranges[0].start, ranges[0].end)
    except (DeniedFileError, UnreadableFileError):
        return  # The task that reads the file reports the reason.
    with memoryview(data) as view:
        for start in range(0, len(view), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]


def measure_conversion(results: Sequence[TaskResult]) -> DatasetMeasurement:
    """The measurement of the tasks of one attempt.

    A task that reads files of both kinds took its time for each byte of NDJSON alike: decompressing is a small part.
    """
    splits = [split for result in results for split in result.splits]
    return DatasetMeasurement(
        input_bytes=_stored(splits),
        output_bytes=sum(item.size for result in results for item in result.objects),
        task_milliseconds=sum(result.milliseconds for result in results),
        compressed_bytes=_stored(_compressed(splits)),
        compressed_milliseconds=sum(map(_compressed_milliseconds, results)),
    )


def _compressed_milliseconds(result: TaskResult) -> int:
    compressed, every = (sum(split.bytes for split in part) for part in (_compressed(result.splits), result.splits))
    return round(result.milliseconds * compressed / every) if every else 0


def _compressed(splits: Iterable[SplitResult]) -> list[SplitResult]:
    return [split for split in splits if split.compressed]


def _stored(splits: Iterable[SplitResult]) -> int:
    return sum(split.split.size for split in splits)
