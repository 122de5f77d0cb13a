"""Files have the target size, every row and every column, also when columns appear later."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_type_hints

import pyarrow.parquet as pq
import pytest
from ndjson_arrow import Batch, Reader

from lake.settings import ConvertSettings
from tests.unit.native.reader_driver import batch_of
from transform.parquet_writer import MAX_FILL, MAX_HELD_BYTES, MAX_METADATA_BYTES, ParquetFiles


@dataclass
class Finished:
    paths: list[Path] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def __call__(self, path: Path, rows: int) -> None:
        self.paths.append(path)
        self.rows.append(rows)


def next_batch(reader: Reader, rows: Sequence[Mapping[str, str]]) -> Batch:
    return batch_of(reader, b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def test_a_new_column_is_null_in_earlier_rows(tmp_path: Path) -> None:
    # Given batches whose columns grow, some of them within a row group, and a known one without a value
    finished, reader = Finished(), Reader(known_columns=["never"])
    first = next_batch(reader, [{"A": "x0"}, {"A": "x1"}])
    second = next_batch(reader, [{"A": "y", "B": "x0"}])
    files = ParquetFiles(tmp_path, ConvertSettings(row_group_bytes=40), finished)
    files.write(first)
    files.write(second)
    files.write(next_batch(reader, [{"A": "z", "B": "x0"}]))
    files.write(next_batch(reader, [{"C": "x0"}]))

    # When
    files.close()

    # Then one file has all rows, and the disk holds nothing else
    (path,) = finished.paths
    table = pq.read_table(path)
    assert pq.read_metadata(path).num_row_groups > 1
    assert table.column("__c").to_pylist() == [None, None, None, None, "x0"]
    assert table.column("__b").to_pylist() == [None, None, "x0", "x0", None]
    assert [(column.metadata or {}).get(b"original_key") for column in pq.read_schema(path)] == [None, b"A", b"B", b"C"]
    assert finished.rows == [5]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_settings_reach_the_file(tmp_path: Path, compression: str) -> None:
    finished = Finished()
    files = ParquetFiles(tmp_path, ConvertSettings(compression=compression), finished)
    files.write(next_batch(Reader(), [{"a": f"x{row % 3}"} for row in range(300)]))
    files.close()
    chunk = pq.read_metadata(finished.paths[0]).row_group(0).column(1)
    assert chunk.compression == compression.upper()


@pytest.mark.parametrize("columns", [2, 400])
def test_a_row_group_ends_when_it_takes_too_much_memory(tmp_path: Path, columns: int) -> None:
    # Given values that hardly compress: in full pages, and in so many columns that no page is full
    chance = random.Random(1)
    rows = [{f"c{c}": chance.randbytes(100_000 // columns).hex() for c in range(columns)} for _ in range(35)]
    finished = Finished()
    files = ParquetFiles(tmp_path, ConvertSettings(), finished)
    reader = Reader()
    for _ in range(16):
        files.write(next_batch(reader, rows))
    files.close()
    # Then 112 MB of values are in several row groups, though the setting allows 128 MiB in one
    assert pq.read_metadata(finished.paths[0]).num_row_groups > 1


def test_a_file_ends_when_its_metadata_takes_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given room for the chunks of three row groups of 20 columns, each of which has a value in every page
    monkeypatch.setattr("transform.parquet_writer.MAX_METADATA_BYTES", 3 * 20 * 1024)
    finished, reader = Finished(), Reader()
    files = ParquetFiles(tmp_path, ConvertSettings(row_group_bytes=400_000), finished)
    rows = json.dumps({f"c{column}": "x" for column in range(20)}).encode() + b"\n" + b"{}\n" * 20_479

    # When
    for _ in range(40):
        files.write(batch_of(reader, rows))
    files.close()

    # Then their pages leave room for one
    groups = [pq.read_metadata(path).num_row_groups for path in finished.paths]
    assert sum(finished.rows) == 40 * 20_480
    assert groups == [1] * 5


@pytest.mark.parametrize("drifting", [False, True])
def test_files_stay_near_their_target(tmp_path: Path, drifting: bool) -> None:
    # Given far more output than one file should hold, in row groups of a tenth of the target
    generator = random.Random(2)
    target = 1_000_000
    finished, reader = Finished(), Reader()
    settings = ConvertSettings(target_file_bytes=target, compression="snappy", row_group_bytes=1)
    files = ParquetFiles(tmp_path, settings, finished)
    for number in range(60):
        rows = [{"a": generator.randbytes(50).hex()} for _ in range(1000)]
        if drifting:
            rows[0][f"k{number}"] = "new"
        files.write(next_batch(reader, rows))
    files.close()

    # Then every file but the last is near its target
    sizes = [path.stat().st_size for path in finished.paths]
    assert len(sizes) > 3
    assert all(target / 2 <= size <= target * 1.6 for size in sizes[:-1])
    assert sum(finished.rows) == 60_000


@pytest.mark.parametrize(("rest", "expected"), [(60, 1), (900, 2)])
def test_a_small_rest_is_no_file_of_its_own(tmp_path: Path, rest: int, expected: int) -> None:
    # Given row groups of a third of the target, after four of which little or much is left
    generator = random.Random(2)
    finished, reader = Finished(), Reader()
    settings = ConvertSettings(target_file_bytes=320_000, compression="snappy", row_group_bytes=1)
    files = ParquetFiles(tmp_path, settings, finished)
    written = 0
    for rows in (1000, 1000, 1000, 1000, rest):
        written += rows
        batch = next_batch(reader, [{"a": generator.randbytes(50).hex()} for _ in range(rows)])
        files.write(batch, written / (4000 + rest))
    files.close()
    # Then
    assert len(finished.paths) == expected


def test_the_largest_file_is_one_part_of_an_upload() -> None:
    (allowed,) = get_type_hints(ConvertSettings, include_extras=True)["target_file_bytes"].__metadata__
    largest = 3 << 30
    assert allowed.refusal(largest) is None
    assert allowed.refusal(largest + 1)
    # The last row group is written when the file is nearly full.
    assert largest * MAX_FILL + MAX_HELD_BYTES + MAX_METADATA_BYTES < 5 << 30
