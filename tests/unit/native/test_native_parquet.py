"""ParquetFile from Python: rows, footers, dictionaries and errors."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ndjson_arrow import Batch, ParquetFile, Reader

from tests.unit.native.reader_driver import batch_of, batches_of


@pytest.mark.parametrize("character", ["x", "ü", "😀"])
def test_bounds_are_short_and_lie_around_the_values(character: str, tmp_path: Path) -> None:
    # Given a value of a bound's maximum length, and a longer one
    path = tmp_path / "file.parquet"
    size = len(character.encode())
    short, long = character * (64 // size), character * 5000
    file = ParquetFile(path)
    file.write(batch_of(Reader(), json.dumps({"short": short, "long": long}).encode()))

    # When
    file.close()

    # Then the bounds of the longer one enclose it
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


def test_an_error_of_the_operating_system_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ParquetFile(tmp_path / "missing" / "file.parquet")
    with pytest.raises(OSError, match="No space left"):
        ParquetFile("/dev/full")


ROWS = 100_000


MAX_ENTRIES = 32_768


def write(path: Path, columns: dict[str, Sequence[str | None]]) -> None:
    """One file with one row group."""
    file, rows = ParquetFile(path), zip(*columns.values(), strict=True)
    members = ({name: text for name, text in zip(columns, row, strict=True) if text is not None} for row in rows)
    for batch in batches_of((json.dumps(row).encode() + b"\n" for row in members), flush_bytes=16 << 20):
        file.write(batch)
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
    # Then
    assert encodings(path, "k") == expected
    assert pq.read_table(path, read_dictionary=["k"])["k"].cast(pa.string()).to_pylist() == values


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
    # Given columns whose dictionaries would take 40 MB together, with 32 MiB allowed
    values = [f"{row // 3 % 1600:0>300}" for row in range(4800)]
    # When
    write(tmp_path / "file.parquet", {f"k{number}": values for number in range(80)})
    # Then some continue without a dictionary
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
    # Given rows that are so long that a row group would contain each of 800 values about four times
    values = [str(number) for number in random.Random(1).choices(range(10_000, 10_800), k=1500)]
    padding = [f"{row:0>40000}" for row in range(1500)]
    write(tmp_path / "file.parquet", {"k": values, "padding": padding})
    # Then
    assert encodings(tmp_path / "file.parquet", "k") == {"PLAIN"}
    assert pq.read_table(tmp_path / "file.parquet")["k"].to_pylist() == values


@pytest.mark.parametrize(("more", "expected"), [(0, {"PLAIN"}), (9, {"PLAIN", "RLE_DICTIONARY"})])
def test_a_column_with_few_expected_values_is_plain(tmp_path: Path, more: int, expected: set[str]) -> None:
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
