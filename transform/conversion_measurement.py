"""What a conversion measured of its dataset: the time of plain files and of compressed ones apart. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lake.ledger import DatasetMeasurement

if TYPE_CHECKING:
    from transform.task_model import SplitResult, TaskResult


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
