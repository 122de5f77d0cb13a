"""Files of the right size whatever the columns do, with every row and every column."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.settings import ConvertSettings
from transform.parquet_writer import ParquetFiles

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Finished:
    paths: list[Path] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def __call__(self, path: Path, rows: int) -> None:
        self.paths.append(path)
        self.rows.append(rows)


def batch(columns: list[str], rows: int, text: str = "x") -> pa.RecordBatch:
    fields = [pa.field(name, pa.string(), metadata={"original_key": name.upper()}) for name in columns]
    return pa.RecordBatch.from_arrays(
        [pa.array([f"{text}{row}" for row in range(rows)])] * len(columns), schema=pa.schema(fields)
    )


def test_columns_found_later_are_null_before(tmp_path: Path) -> None:
    # Given batches whose columns grow
    finished = Finished()
    files = ParquetFiles(tmp_path, ConvertSettings(), finished)
    files.write(batch(["a"], 2))
    files.write(batch(["a", "b"], 1))
    files.write(batch(["a", "b"], 1))
    files.write(batch(["a", "b", "c"], 1))

    # When
    files.close()

    # Then one file has them all, and nothing else is left on the disk
    (path,) = finished.paths
    table = pq.read_table(path)
    assert table.column("c").to_pylist() == [None, None, None, None, "x0"]
    assert table.column("b").to_pylist() == [None, None, "x0", "x0", "x0"]
    assert [(column.metadata or {})[b"original_key"] for column in pq.read_schema(path)] == [b"A", b"B", b"C"]
    assert finished.rows == [5]
    assert files.rows == 5
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_settings_reach_the_file(tmp_path: Path, compression: str) -> None:
    finished = Finished()
    files = ParquetFiles(tmp_path, ConvertSettings(compression=compression), finished)
    files.write(batch(["a"], 3))
    files.close()
    chunk = pq.read_metadata(finished.paths[0]).row_group(0).column(0)
    assert chunk.compression == compression.upper()
    assert not chunk.has_dictionary_page
    assert (chunk.statistics.min, chunk.statistics.max) == ("x0", "x2")


@pytest.mark.parametrize("drifting", [False, True])
def test_files_stay_near_their_target(tmp_path: Path, drifting: bool) -> None:
    # Given far more output than one file should hold, in row groups of a tenth of the target
    generator = random.Random(2)
    target = 200_000
    finished = Finished()
    files = ParquetFiles(tmp_path, ConvertSettings(target_file_bytes=target, compression="snappy"), finished)
    for number in range(60):
        columns = ["a", *(f"k{index}" for index in range(number if drifting else 0))]
        texts = [generator.randbytes(50).hex() for _ in range(200)]
        empty = pa.nulls(200, pa.string())
        arrays = [pa.array(texts), *[empty] * (len(columns) - 1)]
        files.write(pa.RecordBatch.from_arrays(arrays, names=columns))
        files.end_full_file()
    files.close()

    # Then no file is far from it but the last
    sizes = [path.stat().st_size for path in finished.paths]
    assert len(sizes) > 3
    assert all(target / 2 <= size <= target * 1.6 for size in sizes[:-1])
    assert sum(finished.rows) == 12_000


def test_the_last_file_is_not_a_small_rest(tmp_path: Path) -> None:
    # Given output of 2.1 times the target, in row groups of a twentieth of it
    generator = random.Random(3)
    target = 200_000
    finished = Finished()
    files = ParquetFiles(tmp_path, ConvertSettings(target_file_bytes=target, compression="snappy"), finished)
    for number in range(1, 43):
        texts = pa.array([generator.randbytes(50).hex() for _ in range(95)])
        files.write(pa.RecordBatch.from_arrays([texts], names=["a"]))
        files.end_full_file(number / 42)
    files.close()

    # Then
    sizes = [path.stat().st_size for path in finished.paths]
    assert len(sizes) == 2
    assert all(target / 2 <= size <= target * 1.5 for size in sizes)


def test_no_batch_is_no_file(tmp_path: Path) -> None:
    finished = Finished()
    ParquetFiles(tmp_path, ConvertSettings(), finished).close()
    assert finished.paths == []
