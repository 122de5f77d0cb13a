"""Files have the target size, every row and every column, even if columns appear later.

A writer that loses, duplicates, swaps or changes values is found before any part of its file is uploaded.
"""

import json
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints
from unittest.mock import Mock

import ndjson_arrow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ndjson_arrow import Reader

from lake.errors import AuditError
from lake.settings import ConvertSettings
from tests.unit.native.reader_driver import batch_of
from transform import parquet_writer
from transform.chunk_sample import DECODED_BYTES, ChunkSample, Sampling, digest
from transform.parquet_writer import MAX_FILL, MAX_HELD_BYTES, MAX_METADATA_BYTES, ParquetFiles


class Files(ParquetFiles):
    """Writes rows to files of a folder, and keeps the path and the number of rows of each."""

    def __init__(self, folder: Path, known: Sequence[str] = (), sampling: Sampling | None = None, **more: Any) -> None:
        self.paths, self.rows, self.reader = list[Path](), list[int](), Reader(known_columns=known)
        super().__init__(folder, ConvertSettings(**more), self._finished, sampling or Sampling())

    def _finished(self, path: Path, rows: int) -> None:
        self.paths.append(path)
        self.rows.append(rows)

    def add(self, rows: Sequence[Mapping[str, str | None]], read_share: float = 1.0) -> None:
        self.write(batch_of(self.reader, body(rows)), read_share)


def body(rows: Sequence[Mapping[str, str | None]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_a_new_column_is_null_in_earlier_rows(tmp_path: Path) -> None:
    # Given batches whose columns grow, some of them within a row group, and a known column without a value
    files = Files(tmp_path, ["never"], row_group_bytes=40)
    for rows in ([{"A": "x0"}, {"A": "x1"}], [{"A": "y", "B": "x0"}], [{"A": "z", "B": "x0"}], [{"C": "x0"}]):
        files.add(rows)

    # When
    files.close()

    # Then one file has all rows, and the disk has no other file
    (path,) = files.paths
    table = pq.read_table(path)
    assert pq.read_metadata(path).num_row_groups > 1
    assert table.column("__c").to_pylist() == [None, None, None, None, "x0"]
    assert table.column("__b").to_pylist() == [None, None, "x0", "x0", None]
    assert [(column.metadata or {}).get(b"original_key") for column in pq.read_schema(path)] == [None, b"A", b"B", b"C"]
    assert files.rows == [5]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("columns", [2, 400])
def test_a_row_group_ends_when_it_takes_too_much_memory(tmp_path: Path, columns: int) -> None:
    # Given values that hardly compress: in full pages, and in too many columns for a full page
    chance = random.Random(1)
    rows = [{f"c{c}": chance.randbytes(100_000 // columns).hex() for c in range(columns)} for _ in range(35)]
    files = Files(tmp_path)
    for _ in range(16):
        files.add(rows)
    files.close()
    # Then 112 MB of values are in several row groups, although the setting allows 128 MiB in one
    assert pq.read_metadata(files.paths[0]).num_row_groups > 1


def test_a_file_ends_when_its_metadata_takes_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given room for the chunks of three row groups of 20 columns, each with a value in every page
    monkeypatch.setattr("transform.parquet_writer.MAX_METADATA_BYTES", 3 * 20 * 1024)
    files = Files(tmp_path, row_group_bytes=400_000)
    rows = body([{f"c{column}": "x" for column in range(20)}]) + b"{}\n" * 20_479

    # When
    for _ in range(40):
        files.write(batch_of(files.reader, rows))
    files.close()

    # Then their pages leave room for one
    groups = [pq.read_metadata(path).num_row_groups for path in files.paths]
    assert sum(files.rows) == 40 * 20_480
    assert groups == [1] * 5


@pytest.mark.parametrize("drifting", [False, True])
def test_files_stay_near_their_target(tmp_path: Path, drifting: bool) -> None:
    # Given far more output than one file should hold, in row groups of a tenth of the target
    chance, target = random.Random(2), 1_000_000
    files = Files(tmp_path, target_file_bytes=target, compression="snappy", row_group_bytes=1)
    for number in range(60):
        rows = [{"a": chance.randbytes(50).hex()} for _ in range(1000)]
        if drifting:
            rows[0][f"k{number}"] = "new"
        files.add(rows)
    files.close()

    # Then every file except the last is near its target
    sizes = [path.stat().st_size for path in files.paths]
    assert len(sizes) > 3
    assert all(target / 2 <= size <= target * 1.6 for size in sizes[:-1])
    assert sum(files.rows) == 60_000


@pytest.mark.parametrize(("rest", "expected"), [(60, 1), (900, 2)])
def test_a_small_remainder_gets_no_separate_file(tmp_path: Path, rest: int, expected: int) -> None:
    # Given row groups of a third of the target, and little or much data left after four of them
    chance, written = random.Random(2), 0
    files = Files(tmp_path, target_file_bytes=320_000, compression="snappy", row_group_bytes=1)
    for rows in (1000, 1000, 1000, 1000, rest):
        written += rows
        files.add([{"a": chance.randbytes(50).hex()} for _ in range(rows)], written / (4000 + rest))
    files.close()
    # Then
    assert len(files.paths) == expected


def test_the_largest_file_is_one_part_of_an_upload() -> None:
    (allowed,) = get_type_hints(ConvertSettings, include_extras=True)["target_file_bytes"].__metadata__
    largest = 3 << 30
    assert allowed.refusal(largest) is None
    assert allowed.refusal(largest + 1)
    # The last row group is written when the file is nearly full.
    assert largest * MAX_FILL + MAX_HELD_BYTES + MAX_METADATA_BYTES < 5 << 30


ROWS: list[dict[str, Any]] = [
    {"a": f"value {row}", "b": None if row % 3 == 0 else f"{row}", "c": ""} for row in range(200)
]


def change_column(table: pa.Table, name: str, change: Callable[[list[Any]], list[Any]]) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(
        index, table.schema.field(index), pa.array(change(table.column(name).to_pylist()), pa.string())
    )


def swap_columns(table: pa.Table) -> pa.Table:
    return change_column(
        change_column(table, "a", lambda _: table.column("b").to_pylist()), "b", lambda _: table.column("a").to_pylist()
    )


FAULTS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a value is doubled and the next one lost": lambda t: change_column(t, "a", lambda v: [*v[:7], v[6], *v[8:]]),
    "a character moves on": lambda t: change_column(t, "a", lambda v: [v[0][:-1], v[0][-1] + v[1], *v[2:]]),
    "NULL becomes empty": lambda t: change_column(t, "b", lambda v: ["" if value is None else value for value in v]),
    "columns are swapped": swap_columns,
    "a row is lost": lambda t: t.slice(1),
    "a column is left out": lambda t: t.drop_columns(["b"]),
    "a column is there twice": lambda t: t.append_column("c", t.column("c")),
    "a page is repeated": lambda t: pa.concat_tables([t.slice(0, 100), t.slice(0, 100)]),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_writer_that_changes_values_is_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a writer whose file has the right number of rows, but wrong ones
    class FaultyFile:
        def __init__(self, path: Path, **options: Any) -> None:
            self._path, self._file = path, ndjson_arrow.ParquetFile(path, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def close(self, metadata: dict[str, str], field_ids: list[int] | None) -> None:
            self._file.close(metadata, field_ids)
            pq.write_table(FAULTS[fault](pq.read_table(self._path)), self._path)

    monkeypatch.setattr(parquet_writer, "ParquetFile", FaultyFile)

    # When, Then
    files = Files(tmp_path)
    files.add(ROWS)
    with pytest.raises(AuditError, match="the task is retried"):
        files.close()


@pytest.mark.parametrize(("row_groups", "rows"), [([2], 2), ([1, 2], 3), ([3], 2)])
def test_a_footer_with_another_number_of_rows_is_found(row_groups: list[int], rows: int) -> None:
    sample = ChunkSample(Sampling(), 0)
    batch = batch_of(Reader(), body([{"a": "x"}] * 3))
    sample.add(batch, len(batch.names))
    footer = Mock(num_rows=rows, num_row_groups=len(row_groups))
    footer.row_group = lambda number: Mock(num_rows=row_groups[number])
    with pytest.raises(AuditError, match="row counts"):
        sample.check(Mock(metadata=footer, schema_arrow=Mock(names=batch.names)), batch.names)


def test_columns_of_few_values_are_decoded_in_bounded_memory(tmp_path: Path) -> None:
    # Given columns that take a few kilobytes in the file, and 5 MB each when they are decoded, one of them 40 MB
    path = tmp_path / "0.parquet"
    sample = ChunkSample(Sampling(), 0)
    rows = [
        {f"k{column}": f"{row % 3}" * (40_000 if column == 3 else 5000) for column in range(8)} for row in range(1000)
    ]
    batch = batch_of(Reader(flush_bytes=128 << 20), body(rows))
    sample.add(batch, len(batch.names))
    writer = ndjson_arrow.ParquetFile(path)
    writer.write(batch)
    writer.close()
    assert path.stat().st_size < 100_000
    decoded = list[int]()

    def measured(*arguments: Any, **options: Any) -> Any:
        for batch in whole.iter_batches(*arguments, **options):
            decoded.append(batch.nbytes)
            yield batch

    # When
    with pq.ParquetFile(path) as whole:
        file = Mock(metadata=whole.metadata, schema_arrow=whole.schema_arrow, iter_batches=measured)
        sample.check(file, batch.names)
    # Then
    assert sum(decoded) > 2 * DECODED_BYTES
    assert max(decoded) <= DECODED_BYTES


def test_columns_that_appear_later_and_many_row_groups_pass(tmp_path: Path) -> None:
    reader = Reader()
    for share in (1, 2, 3, 32):
        files = Files(tmp_path, sampling=Sampling(share), row_group_bytes=100)
        files.reader = reader
        for number in range(8):
            files.add([{"k": "x"}, {f"k{number}": "y"}])
        files.close()


@pytest.mark.parametrize("columns", [1, 5, 40, 1000])
def test_each_file_has_a_sampled_chunk_and_a_large_one_its_share(columns: int) -> None:
    for seed in range(40):
        sample = ChunkSample(Sampling(32, seed), 0)
        rows = batch_of(Reader(), body([{f"k{number}": "x" for number in range(columns - 1)}]))
        sample.add(rows, columns)
        sampled = [len(sample._sampled(group)) for group in range(32)]
        assert sampled[0] >= 1
        assert columns <= sum(sampled) <= columns + 1


@settings(max_examples=100)
@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1, max_size=80), st.integers(0, 79))
def test_reader_and_pyarrow_digest_the_same_values_alike(values: list[str | None], cut: int) -> None:
    # Given the same values in a batch of the reader, and in Arrow arrays of another length
    batch = batch_of(Reader(known_columns=["a"]), body([{"a": value} for value in values]))
    arrays = [pa.array(values[:cut], pa.string()), pa.array(values, pa.string())[cut:]]

    # When, Then
    assert digest(arrays) == batch.digest(0, (0, 0, 0, 0))
    text = "".join(value or "" for value in values).encode()
    assert digest(arrays)[3] == zlib.crc32(text)
