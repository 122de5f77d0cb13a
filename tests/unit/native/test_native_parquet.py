"""ParquetFile from Python: rows, footers and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest
from ndjson_arrow import ParquetFile, Reader

from tests.unit.native.reader_driver import batch_of

if TYPE_CHECKING:
    from pathlib import Path


def test_pages_and_row_groups_hold_every_row(tmp_path: Path) -> None:
    # Given two row groups: one with more bytes than a page holds, one with more rows
    rows = 9 * ((1 << 17) + 3)
    reader, path = Reader(), tmp_path / "file.parquet"
    long = [{"long": f"{row} " + "x" * 900, "sparse": "y" if row % 1000 == 999 else None} for row in range(5000)]
    file = ParquetFile(path)
    file.write(batch_of(reader, b"".join(json.dumps(row).encode() + b"\n" for row in long)))
    file.end_row_group()
    first_row_group_end = file.size
    for _ in range(9):
        file.write(batch_of(reader, b"{}\n" * ((1 << 17) + 3)))
    # When
    file.close({"key": "value"})
    # Then
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(group).num_rows for group in range(2)] == [5000, rows]
    assert metadata.metadata is not None
    assert metadata.metadata[b"key"] == b"value"
    assert metadata.created_by.startswith("ndjson-arrow version ")
    chunk = metadata.row_group(0).column(1)
    assert chunk.file_offset + chunk.total_compressed_size <= first_row_group_end
    table = pq.read_table(path)
    assert table.column("long").to_pylist()[:5000] == [row["long"] for row in long]
    assert table.column("sparse").null_count == table.num_rows - 5
    assert table.column("long").null_count == rows


@pytest.mark.parametrize("character", ["x", "ü", "😀"])
def test_bounds_are_short_and_lie_around_the_values(character: str, tmp_path: Path) -> None:
    # Given a value as long as a bound can be, and a longer one
    path = tmp_path / "file.parquet"
    size = len(character.encode())
    short, long = character * (64 // size), character * 5000
    file = ParquetFile(path)
    file.write(batch_of(Reader(), json.dumps({"short": short, "long": long}).encode()))

    # When
    file.close()

    # Then the bounds of the longer one lie around it
    exact, cut = (pq.read_metadata(path).row_group(0).column(index).statistics for index in (1, 2))
    assert exact
    assert (exact.min, exact.max) == (short, short)
    assert cut
    assert cut.min == short
    assert cut.max
    assert len(cut.max.encode()) <= 64
    assert cut.min.encode() < long.encode() < cut.max.encode()
    with duckdb.connect() as connection:
        query = "SELECT min_is_exact, max_is_exact FROM parquet_metadata(?) WHERE path_in_schema <> '_rescued'"
        assert connection.execute(query, [str(path)]).fetchall() == [(True, True), (False, False)]


def test_a_column_without_values_is_left_out(tmp_path: Path) -> None:
    # Given known columns: one has a value in the second row group only, one never
    path = tmp_path / "file.parquet"
    reader = Reader(known_columns=["never", "late", "early"])
    file = ParquetFile(path)
    file.write(batch_of(reader, b'{"early":1,"never":null}'))
    file.end_row_group()
    file.write(batch_of(reader, b'{"early":2}'))
    assert file.columns == [2, 3]
    batch = batch_of(reader, b'{"late":"","new":"x"}')
    assert (batch.names, batch.filled_columns) == (["never", "late", "early", "_rescued", "new"], [1, 4])
    file.write(batch)
    assert file.columns == [1, 2, 3, 4]

    # When
    file.close()

    # Then the others keep their order
    assert pq.read_table(path).to_pydict() == {
        "late": [None, None, ""],
        "early": ["1", "2", None],
        "_rescued": [None, None, None],
        "new": [None, None, "x"],
    }


def test_each_column_of_the_file_gets_its_field_id(tmp_path: Path) -> None:
    def written(field_ids: list[int]) -> dict[str, bytes | None]:
        file = ParquetFile(tmp_path / "file.parquet")
        file.write(batch_of(Reader(known_columns=["never", "a"]), b'{"a":1,"b":2}'))
        file.close({}, field_ids)
        schema = pq.read_schema(tmp_path / "file.parquet")
        return {field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in schema}

    assert written([7, 2**31 - 1, 1]) == {"a": b"7", "_rescued": b"2147483647", "b": b"1"}
    with pytest.raises(RuntimeError, match="2 field ids for 3 columns"):
        written([7, 8])


def test_a_batch_can_be_written_once(tmp_path: Path) -> None:
    file = ParquetFile(tmp_path / "file.parquet")
    batch = batch_of(Reader(), b"{}")
    file.write(batch)
    with pytest.raises(RuntimeError, match="already taken"):
        file.write(batch)
    # The file is incomplete after the error: it must not get a footer
    with pytest.raises(RuntimeError, match="failed before"):
        file.close()


def test_a_batch_must_start_with_the_previous_columns(tmp_path: Path) -> None:
    file = ParquetFile(tmp_path / "file.parquet")
    file.write(batch_of(Reader(), b'{"a":1}'))
    with pytest.raises(RuntimeError, match="must start with the columns of the previous batch"):
        file.write(batch_of(Reader(), b'{"b":1}'))


def test_unknown_compression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='compression is "lzo": it must be "none", "snappy" or "zstd"'):
        ParquetFile(tmp_path / "file.parquet", compression="lzo")


def test_an_error_of_the_operating_system_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ParquetFile(tmp_path / "missing" / "file.parquet")
    with pytest.raises(OSError, match="No space left"):
        ParquetFile("/dev/full")
