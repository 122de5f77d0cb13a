"""Files to splits, splits to tasks. Pure: sizes in, ranges out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from transform.task_model import Split

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion

DEFAULT_OUTPUT_RATIO = 0.2
"""Parquet bytes per input byte of a manifest that was not sampled, in a dataset that was not measured."""
MIN_OUTPUT_RATIO = 0.01
"""A lower ratio would put too much input into one task."""


def split_file(file: ObjectVersion, split_bytes: int, *, whole: bool) -> list[Split]:
    """Ranges of about equal size, none above ``split_bytes``, that tile the file; ``whole``: it is one range."""
    count = 1 if whole else max(1, -(-file.size // split_bytes))
    borders = [file.size * number // count for number in range(count + 1)]
    return [Split(file, start, end) for start, end in pairwise(borders)]


def split_files(files: Sequence[ObjectVersion], whole: Collection[ObjectVersion], split_bytes: int) -> list[Split]:
    """The splits of a manifest's files, in order; those in ``whole`` are one split each."""
    return [split for file in files for split in split_file(file, split_bytes, whole=file in whole)]


def pack_tasks(
    splits: Sequence[Split], target_file_bytes: int, output_ratio: float | None, min_tasks: int = 1
) -> list[tuple[Split, ...]]:
    """Consecutive splits to tasks, each of which is expected to write about ``target_file_bytes``.

    The number of tasks is rounded and the input shared evenly. So a task writes between two thirds and one and a half
    of the target, as far as the ratio holds and there is enough input.

    Parameters
    ----------
    output_ratio
        Parquet bytes per input byte; None: ``DEFAULT_OUTPUT_RATIO``.
    min_tasks
        At least so many, where there are as many splits.
    """
    ratio = max(output_ratio or DEFAULT_OUTPUT_RATIO, MIN_OUTPUT_RATIO)
    total = sum(split.size for split in splits)
    count = max(1, min(min_tasks, len(splits)), round(total * ratio / target_file_bytes))
    tasks: list[list[Split]] = []
    packed_bytes = 0
    for split in splits:
        # By the middle of the split, so that the error of one task is at most half a split.
        slot = (2 * packed_bytes + split.size) * count // (2 * total) if total else 0
        if not tasks or (slot >= len(tasks) and tasks[-1]):
            tasks.append([])
        tasks[-1].append(split)
        packed_bytes += split.size
    return [tuple(task) for task in tasks]
