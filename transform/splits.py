"""Files to splits to tasks. Pure: sizes in, ranges out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from transform.task_model import Split

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lake.manifest import ObjectVersion

DEFAULT_OUTPUT_RATIO = 0.2
"""Parquet bytes per input byte where that is not known."""
MIN_OUTPUT_RATIO = 0.01
"""A ratio below this would put too much work into one task."""


def cut(file: ObjectVersion, split_bytes: int, *, compressed: bool) -> list[Split]:
    """Ranges of about equal size, none above ``split_bytes``, that tile the file; a compressed file stays whole."""
    count = 1 if compressed else max(1, -(-file.size // split_bytes))
    borders = [file.size * number // count for number in range(count + 1)]
    return [Split(file, start, end) for start, end in pairwise(borders)]


def splits_of(files: Sequence[ObjectVersion], compressed: Collection[ObjectVersion], split_bytes: int) -> list[Split]:
    """The splits of a manifest's files, in order."""
    return [split for file in files for split in cut(file, split_bytes, compressed=file in compressed)]


def pack(splits: Sequence[Split], target_file_bytes: int, output_ratio: float | None) -> list[tuple[Split, ...]]:
    """Consecutive splits to tasks whose output is expected to be near ``target_file_bytes`` each.

    The number of tasks is rounded and the work shared evenly, so none is much below two thirds or above one and a
    half of the target when there is that much.
    """
    ratio = max(output_ratio or DEFAULT_OUTPUT_RATIO, MIN_OUTPUT_RATIO)
    total = sum(split.size for split in splits)
    count = max(1, round(total * ratio / target_file_bytes))
    tasks: list[list[Split]] = []
    packed = 0
    for split in splits:
        # A split goes where its middle falls.
        slot = (2 * packed + split.size) * count // (2 * total) if total else 0
        if not tasks or (slot >= len(tasks) and tasks[-1]):
            tasks.append([])
        tasks[-1].append(split)
        packed += split.size
    return [tuple(task) for task in tasks]
