"""The plan of an attempt: splits, tasks, portions, the sampled output ratio; and the measurements of the attempt."""

import gzip
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ndjson_arrow import Batch

from bench.input_files import Recipe, generate
from lake.manifest import ObjectVersion
from lake.settings import ConvertSettings
from offline.input_files import InputFiles, LocalFile
from offline.output_folder import stage_file
from tests.unit.lake.world import file_of
from tests.unit.transform.job import pending, task_of
from transform.parquet_writer import OpenFile
from transform.plan_attempt import (
    MAX_BATCHES,
    divide_into_portions,
    measure_conversion,
    output_ratio,
    pack_tasks,
    split_files,
)
from transform.run_task import run_task
from transform.task_model import Split, SplitResult, TaskResult

MIB = 1 << 20
FETCH = InputFiles("").fetch


@given(st.integers(0, 10_000), st.integers(1, 11_000))
def test_splits_tile_the_file(size: int, split_bytes: int) -> None:
    splits = split_files([file_of("a.json", size)], (), split_bytes)
    assert splits[0].start == 0
    assert splits[-1].end == size
    assert all(left.end == right.start for left, right in pairwise(splits))
    assert all(0 < split.size <= split_bytes for split in splits) or size == 0
    assert max(split.size for split in splits) - min(split.size for split in splits) <= 1


@given(
    st.lists(st.integers(0, 600 * MIB), min_size=1, max_size=60),
    st.sampled_from([1, 10 * MIB, 256 * MIB]),
    st.one_of(st.none(), st.floats(0, 2)),
)
def test_tasks_hold_every_split_once_and_in_order(sizes: list[int], split_mib: int, ratio: float | None) -> None:
    files = [file_of(f"{number}.json", size) for number, size in enumerate(sizes)]
    splits = split_files(files, (), max(split_mib, 10 * MIB))
    tasks = pack_tasks(splits, 128 * MIB, ratio)
    assert [split for task in tasks for split in task] == splits
    assert all(tasks)


@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.5, 1.0])
def test_output_files_are_expected_between_64_and_192_mib(ratio: float) -> None:
    splits = split_files([file_of(f"{number}.json", 4000 * MIB) for number in range(16)], (), 64 * MIB)
    expected = [sum(split.size for split in task) * ratio / MIB for task in pack_tasks(splits, 128 * MIB, ratio)]
    assert all(64 <= size <= 192 for size in expected)


def attempts(*tasks: Sequence[int], stream_seconds: float | None = None) -> list[Any]:
    """Attempts with tasks of these sizes."""
    return [
        SimpleNamespace(
            number=number,
            tasks=[SimpleNamespace(ndjson_bytes=size, stream_seconds=stream_seconds) for size in sizes],
        )
        for number, sizes in enumerate(tasks)
    ]


def divided(found: list[Any], count: int) -> list[list[int]]:
    portions: list[list[Any]] = divide_into_portions(found, count)
    return [[attempt.number for attempt in portion] for portion in portions]


@pytest.mark.parametrize(
    ("task_counts", "expected"),
    [
        ((), []),
        ((0,), [[0]]),
        ((0, 1, 1, 1), [[1], [2], [3, 0]]),
        ((1, 1, 1), [[0], [1], [2]]),
        ((1, 1, 1, 1, 1, 1), [[0, 1], [2, 3], [4, 5]]),
        ((9, 1, 1, 1), [[0], [1, 2, 3]]),
    ],
)
def test_portions_have_about_the_same_number_of_tasks(task_counts: tuple[int, ...], expected: list[list[int]]) -> None:
    assert divided(attempts(*([7] * count for count in task_counts)), 3) == expected


@pytest.mark.parametrize(("stream_seconds", "expected"), [(None, [2, 1, 3, 0]), (300.0, [0, 1, 2, 3])])
def test_the_longest_task_goes_first_except_in_the_stream_lane(
    stream_seconds: float | None, expected: list[int]
) -> None:
    # Given attempts in order of arrival, and one large file among them
    found = attempts([1], [5, 5], [1, 40], [2, 3], stream_seconds=stream_seconds)
    # When, Then
    assert [number for portion in divided(found, 4) for number in portion] == expected


SETTINGS = ConvertSettings()


def splits(files: Sequence[ObjectVersion], compressed: Sequence[ObjectVersion] = ()) -> list[Split]:
    return split_files(files, compressed, SETTINGS.split_bytes)


def converted_ratio(files: Sequence[ObjectVersion], folder: Path) -> float:
    result = run_task(task_of(*splits(files, files)), FETCH, partial(stage_file, folder), folder)
    written = (folder / "lake").rglob("*.parquet")
    assert sum(pq.read_metadata(path).num_rows for path in written) == sum(item.rows for item in result.splits)
    return sum(item.size for item in result.objects) / sum(file.size for file in files)


@pytest.mark.parametrize("shape", ["flat", "nested", "repetitive", "gzip"])
def test_the_sampled_ratio_is_near_the_ratio_of_the_conversion(shape: str, tmp_path: Path) -> None:
    # Given: 24 MB of records; "repetitive" ones compress to a fortieth
    if shape == "repetitive":
        keys = Random(7)
        line = b'{"key":"%016x","text":"%s","kind":"view"}\n'
        text = b"".join(line % (keys.getrandbits(64), b"the same " * 40) for _ in range(60_000))
    else:
        text = generate(Recipe("nested" if shape == "nested" else "flat", 1, 24_000_000), 0)
    path = tmp_path / "input" / "a.ndjson"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(text, 1) if shape == "gzip" else text)
    file = LocalFile.found(str(path))

    # When
    sampled = output_ratio(FETCH, splits([file], [file] if shape == "gzip" else []), SETTINGS)

    # Then
    actual = converted_ratio([file], tmp_path)
    assert sampled is not None
    assert 0.7 < sampled / actual < 1.4, (sampled, actual)


def test_places_are_spread_and_each_is_read_from_its_first_line_on(tmp_path: Path) -> None:
    # Given: four splits, only the last of which has rows at its start
    lines = [b"x" * 99 + b"\n"] * (3 * MIB // 100) + [b'{"a":"%d"}\n' % number for number in range(100_000)]
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(lines))
    file = LocalFile.found(str(path))
    parts = split_files([file], (), -(-file.size // 4))
    assert len(parts) == 4

    # When / Then: a task with only rejects has no ratio, the manifest as a whole has one
    assert output_ratio(FETCH, parts[:2], SETTINGS) is None
    assert output_ratio(FETCH, parts, SETTINGS) is not None


def test_a_file_that_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b'{"a":1}\n' * 1000)
    files = [LocalFile.found(str(tmp_path / name)) for name in ("a", "b")]
    (tmp_path / "a").unlink()
    assert output_ratio(FETCH, splits(files), SETTINGS) is not None


def test_a_compressed_file_is_not_decompressed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a small file that fills more batches than a sample has
    path, rows, write = tmp_path / "a.ndjson.gz", list[int](), OpenFile.write
    path.write_bytes(gzip.compress((b'{"a":"' + b"0" * 990 + b'"}\n') * 60_000, 1))

    def count(file: OpenFile, batch: Batch) -> None:
        rows.append(batch.rows)
        write(file, batch)

    monkeypatch.setattr(OpenFile, "write", count)
    # When, Then
    file = LocalFile.found(str(path))
    assert output_ratio(FETCH, splits([file], [file]), SETTINGS) is not None
    assert len(rows) == MAX_BATCHES
    assert sum(rows) < 60_000


PLAIN, PACKED = file_of("d/a.json", 100), file_of("d/b.json", 40)


def measured_task(milliseconds: int, output: int, *splits: tuple[ObjectVersion, int]) -> TaskResult:
    """The result of a task; a split is the whole file, with its size in NDJSON bytes."""
    counted = [SplitResult(Split(file, 0, file.size), 1, 1, 0, {}, size, file is PACKED, None) for file, size in splits]
    return TaskResult("m", 0, (pending("key", 1, size=output),), (), tuple(counted), (), (), milliseconds)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        # Tasks of one kind count only for that kind; the time of a mixed task is divided by their NDJSON bytes.
        ([(1000, 20, (PLAIN, 100)), (4000, 60, (PACKED, 300))], (80, (100, 1000), (40, 4000))),
        ([(4000, 80, (PLAIN, 100), (PACKED, 300))], (80, (100, 1000), (40, 3000))),
    ],
)
def test_an_attempt_measures_its_dataset(tasks: list[Any], expected: tuple[Any, ...]) -> None:
    assert measure_conversion([measured_task(*task) for task in tasks]) == expected
