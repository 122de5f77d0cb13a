"""Dictionaries of the native writer: where they are begun, where they end, and every value as pyarrow reads it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ndjson_arrow import ParquetFile, Reader

from tests.unit.native.reader_driver import batch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ndjson_arrow import Batch

ROWS = 100_000
MAX_ENTRIES = 32_768


def write(path: Path, columns: dict[str, Sequence[str | None]]) -> None:
    """One file with one row group."""
    file, reader = ParquetFile(path), Reader(flush_bytes=16 << 20)
    reader.open("rows")
    for row in zip(*columns.values(), strict=True):
        members = (f'"{name}":"{value}"' for name, value in zip(columns, row, strict=True) if value is not None)
        reader.feed(("{" + ",".join(members) + "}\n").encode())
        while (batch := reader.read()) is not None:
            file.write(batch)
    reader.end_of_input()
    while (batch := reader.read()) is not None:
        file.write(batch)
    reader.close()
    if (last := reader.flush()) is not None:
        file.write(last)
    file.close()


def encodings(path: Path, column: str) -> set[str]:
    chunks = pq.read_metadata(path).row_group(0)
    by_name = {chunks.column(index).path_in_schema: chunks.column(index) for index in range(chunks.num_columns)}
    return {str(encoding) for encoding in by_name[column].encodings} - {"RLE"}


CHANCE = random.Random(5)
KINDS: dict[str, tuple[Callable[[int], str | None], set[str]]] = {
    "one value": (lambda _: "INFO", {"PLAIN", "RLE_DICTIONARY"}),
    "empty": (lambda _: "", {"PLAIN", "RLE_DICTIONARY"}),
    "in turn": (lambda row: f"host-{row % 300}", {"PLAIN", "RLE_DICTIONARY"}),
    "every third": (lambda row: str(row % 5) if row % 3 else None, {"PLAIN", "RLE_DICTIONARY"}),
    "overflow at the last value": (
        lambda row: str(row % 1000 if row < ROWS - (MAX_ENTRIES - 999) else row),
        {"PLAIN", "RLE_DICTIONARY"},
    ),
    "few, then many": (lambda row: str(row % 90 if row < ROWS // 2 else row), {"PLAIN", "RLE_DICTIONARY"}),
    "all different": (lambda row: f"{row:x}-{CHANCE.getrandbits(60)}", {"PLAIN"}),
    "ascending": (lambda row: str(1_000_000 + row // 3), {"PLAIN"}),
    "late": (lambda row: str(row % 7) if row > ROWS - 1000 else None, {"PLAIN", "RLE_DICTIONARY"}),
}
"""Kind -> value of a row, and the encodings of its chunk: the dictionary page itself is PLAIN."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_has_a_dictionary_where_its_values_repeat(tmp_path: Path, kind: str) -> None:
    # Given
    value, expected = KINDS[kind]
    values = [value(row) for row in range(ROWS)]
    path = tmp_path / "file.parquet"
    # When
    write(path, {"k": values})
    # Then every reader sees every value
    assert encodings(path, "k") == expected
    assert pq.read_table(path)["k"].to_pylist() == values
    assert pq.read_table(path, read_dictionary=["k"])["k"].cast(pa.string()).to_pylist() == values
    assert pl.read_parquet(path)["k"].to_list() == values
    with duckdb.connect() as connection:
        assert [row[0] for row in connection.sql(f"select k from '{path}'").fetchall()] == values
    # And the footer has the bounds of the chunk
    statistics = pq.read_metadata(path).row_group(0).column(1).statistics
    present = [item for item in values if item is not None]
    assert statistics is not None
    assert (statistics.min, statistics.max) == (min(present), max(present))


def test_a_value_larger_than_a_dictionary_ends_it(tmp_path: Path) -> None:
    # Given a column that begins with few values, and one of 15 MB in the middle
    values = [str(row % 3) for row in range(2000)]
    values[1000] = "x" * 15_000_000
    # When
    write(tmp_path / "file.parquet", {"k": values})
    # Then
    assert encodings(tmp_path / "file.parquet", "k") == {"PLAIN", "RLE_DICTIONARY"}
    assert pq.read_table(tmp_path / "file.parquet")["k"].to_pylist() == values


def test_all_dictionaries_of_a_file_have_one_budget(tmp_path: Path) -> None:
    # Given columns whose dictionaries would take 40 MB together, and 32 MiB are allowed
    values = [f"{row // 3 % 1600:0>300}" for row in range(4800)]
    # When
    write(tmp_path / "file.parquet", {f"k{number}": values for number in range(80)})
    # Then some go on without
    with pq.ParquetFile(tmp_path / "file.parquet") as file:
        chunks = [file.metadata.row_group(0).column(index) for index in range(81)]
        sizes = [
            chunk.data_page_offset - (chunk.dictionary_page_offset or 0)
            for chunk in chunks
            if chunk.has_dictionary_page
        ]
    assert len(sizes) > 10
    assert min(sizes) < max(sizes)
    # And every value is there
    table = pq.read_table(tmp_path / "file.parquet")
    assert all(table[f"k{number}"].to_pylist() == values for number in (0, 40, 79))


def test_a_chunk_that_hardly_repeats_its_values_is_plain(tmp_path: Path) -> None:
    # Given so long rows that a row group would have each of 800 values about four times
    values = [str(number) for number in random.Random(1).choices(range(10_000, 10_800), k=1500)]
    padding = [f"{row:0>40000}" for row in range(1500)]
    write(tmp_path / "file.parquet", {"k": values, "padding": padding})
    # Then
    assert encodings(tmp_path / "file.parquet", "k") == {"PLAIN"}
    assert pq.read_table(tmp_path / "file.parquet")["k"].to_pylist() == values


@pytest.mark.parametrize(("more", "expected"), [(0, {"PLAIN"}), (9, {"PLAIN", "RLE_DICTIONARY"})])
def test_a_column_of_which_few_values_will_come_is_plain(tmp_path: Path, more: int, expected: set[str]) -> None:
    file = ParquetFile(tmp_path / "file.parquet")
    file.write(_some_hundred_values(), more)
    file.close()
    assert encodings(tmp_path / "file.parquet", "k") == expected


def test_a_row_group_is_expected_to_end_as_early_as_the_one_before(tmp_path: Path) -> None:
    file = ParquetFile(tmp_path / "file.parquet")
    for _ in range(2):
        file.write(_some_hundred_values())
        file.end_row_group()
    file.close()
    metadata = pq.read_metadata(tmp_path / "file.parquet")
    chunks = [metadata.row_group(group).column(metadata.num_columns - 1) for group in range(2)]
    assert [chunk.has_dictionary_page for chunk in chunks] == [True, False]


def _some_hundred_values() -> Batch:
    """3,000 rows of 600 different values."""
    numbers = random.Random(1).choices(range(600), k=3000)
    return batch_of(Reader(), b"".join(b'{"k":"%d"}\n' % (10_000 + number) for number in numbers))
