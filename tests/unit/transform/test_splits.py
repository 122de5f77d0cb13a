from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.manifest import ObjectVersion
from transform.plan_attempt import pack_tasks, split_file, split_files

MIB = 1 << 20


def file(size: int, key: str = "a.json") -> ObjectVersion:
    return ObjectVersion("input", key, "etag", size, "2026-03-04T12:00:00Z", "v1")


@given(st.integers(0, 10_000), st.integers(1, 11_000))
def test_splits_tile_the_file(size: int, split_bytes: int) -> None:
    splits = split_file(file(size), split_bytes, whole=False)
    assert splits[0].start == 0
    assert splits[-1].end == size
    assert all(left.end == right.start for left, right in pairwise(splits))
    assert all(0 < split.size <= split_bytes for split in splits) or size == 0
    assert max(split.size for split in splits) - min(split.size for split in splits) <= 1


def test_a_compressed_file_stays_whole() -> None:
    large = file(1000)
    (split,) = split_files([large], {large}, 10)
    assert split.whole


def test_an_empty_file_has_one_split_so_that_the_audit_sees_it() -> None:
    (split,) = split_file(file(0), 10, whole=False)
    assert split.whole
    assert split.size == 0


@given(
    st.lists(st.integers(0, 600 * MIB), min_size=1, max_size=60),
    st.sampled_from([1, 10 * MIB, 256 * MIB]),
    st.one_of(st.none(), st.floats(0, 2)),
)
def test_tasks_hold_every_split_once_and_in_order(sizes: list[int], split_mib: int, ratio: float | None) -> None:
    files = [file(size, f"{number}.json") for number, size in enumerate(sizes)]
    splits = split_files(files, (), max(split_mib, 10 * MIB))
    tasks = pack_tasks(splits, 128 * MIB, ratio)
    assert [split for task in tasks for split in task] == splits
    assert all(tasks)


@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.5, 1.0])
def test_output_files_are_expected_between_64_and_192_mib(ratio: float) -> None:
    splits = split_files([file(4000 * MIB, f"{number}.json") for number in range(16)], (), 64 * MIB)
    expected = [sum(split.size for split in task) * ratio / MIB for task in pack_tasks(splits, 128 * MIB, ratio)]
    assert all(64 <= size <= 192 for size in expected)
