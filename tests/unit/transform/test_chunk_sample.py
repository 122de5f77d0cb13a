"""A writer that loses, doubles, swaps or changes values is found before anything of its file is uploaded."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import ndjson_arrow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import AuditError
from lake.settings import ConvertSettings
from tests.unit.native.reader_driver import batch_of
from transform import parquet_writer
from transform.chunk_sample import DECODED_BYTES, ChunkSample, Sampling, digest
from transform.parquet_writer import ParquetFiles

ROWS: list[dict[str, Any]] = [
    {"a": f"value {row}", "b": None if row % 3 == 0 else f"{row}", "c": ""} for row in range(200)
]


def body(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, sampling: Sampling | None = None) -> None:
    files = ParquetFiles(folder, ConvertSettings(), lambda path, rows: None, sampling or Sampling())
    files.write(batch_of(ndjson_arrow.Reader(), body(rows)))
    files.close()


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
    # Given a writer whose file has the right number of rows, and wrong ones
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
    with pytest.raises(AuditError, match="the task is tried again"):
        write(tmp_path)


@pytest.mark.parametrize(("row_groups", "rows"), [([2], 2), ([1, 2], 3), ([3], 2)])
def test_a_footer_with_another_number_of_rows_is_found(row_groups: list[int], rows: int) -> None:
    sample = ChunkSample(Sampling(), 0)
    batch = batch_of(ndjson_arrow.Reader(), body([{"a": "x"}] * 3))
    sample.add(batch, len(batch.names))
    footer = Mock(num_rows=rows, num_row_groups=len(row_groups))
    footer.row_group = lambda number: Mock(num_rows=row_groups[number])
    with pytest.raises(AuditError, match="numbers of rows"):
        sample.check(Mock(metadata=footer, schema_arrow=Mock(names=batch.names)), batch.names)


def test_columns_of_few_values_are_decoded_in_bounded_memory(tmp_path: Path) -> None:
    # Given columns that take a few kilobytes in the file, and 5 MB each when they are decoded, one of them 40 MB
    path = tmp_path / "0.parquet"
    sample = ChunkSample(Sampling(), 0)
    rows = [
        {f"k{column}": f"{row % 3}" * (40_000 if column == 3 else 5000) for column in range(8)} for row in range(1000)
    ]
    batch = batch_of(ndjson_arrow.Reader(flush_bytes=128 << 20), body(rows))
    sample.add(batch, len(batch.names))
    file = ndjson_arrow.ParquetFile(path)
    file.write(batch)
    file.close()
    assert path.stat().st_size < 100_000
    decoded = []

    class Measured:
        def __init__(self, file: pq.ParquetFile) -> None:
            self.metadata, self.schema_arrow, self._file = file.metadata, file.schema_arrow, file

        def iter_batches(self, *arguments: Any, **options: Any) -> Any:
            for batch in self._file.iter_batches(*arguments, **options):
                decoded.append(batch.nbytes)
                yield batch

    # When
    with pq.ParquetFile(path) as whole:
        sample.check(Measured(whole), batch.names)  # type: ignore[arg-type]
    # Then
    assert sum(decoded) > 2 * DECODED_BYTES
    assert max(decoded) <= DECODED_BYTES


def test_columns_that_appear_later_and_many_row_groups_pass(tmp_path: Path) -> None:
    reader = ndjson_arrow.Reader()
    for share in (1, 2, 3, 32):
        files = ParquetFiles(tmp_path, ConvertSettings(row_group_bytes=100), lambda path, rows: None, Sampling(share))
        for number in range(8):
            files.write(batch_of(reader, body([{"k": "x"}, {f"k{number}": "y"}])))
        files.close()


@pytest.mark.parametrize("columns", [1, 5, 40, 1000])
def test_each_file_has_a_sampled_chunk_and_a_large_one_its_share(columns: int) -> None:
    for seed in range(40):
        sample = ChunkSample(Sampling(32, seed), 0)
        rows = batch_of(ndjson_arrow.Reader(), body([{f"k{number}": "x" for number in range(columns - 1)}]))
        sample.add(rows, columns)
        sampled = [len(sample._sampled(group)) for group in range(32)]
        assert sampled[0] >= 1
        assert columns <= sum(sampled) <= columns + 1


@settings(max_examples=100)
@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1, max_size=80), st.integers(0, 79))
def test_reader_and_pyarrow_digest_the_same_values_alike(values: list[str | None], cut: int) -> None:
    # Given the same values in a batch of the reader, and in Arrow arrays of another length
    batch = batch_of(ndjson_arrow.Reader(known_columns=["a"]), body([{"a": value} for value in values]))
    arrays = [pa.array(values[:cut], pa.string()), pa.array(values, pa.string())[cut:]]

    # When, Then
    assert digest(arrays) == batch.digest(0, (0, 0, 0, 0))
    text = "".join(value or "" for value in values).encode()
    assert digest(arrays)[3] == zlib.crc32(text)
