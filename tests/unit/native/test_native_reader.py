"""The use of a Reader: splits, order of calls, buffers, columns after export, threads; its stub."""

import gc
import re
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ndjson_arrow import Reader

from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import ReadResult, assert_same, read_file, read_split

ROOT = Path(__file__).parents[3]


DATA = ROOT.parent / "shared" / "data"


@pytest.mark.skipif(not DATA.is_dir(), reason="the sample data is missing")
@pytest.mark.parametrize("name", ["tweets.ndjson", "amazon_cellphones.ndjson"])
def test_real_files_row_by_row(name: str) -> None:
    # Given
    data = (DATA / name).read_bytes()
    # When
    cuts, splits = range(0, len(data), 4096), range(50_000, len(data), 50_000)
    read = read_file(data, cuts=cuts, splits=splits, provenance=True, reject_sample_count=10_000)
    # Then
    assert_same(read, oracle.read(data), provenance=True)


def test_a_split_is_done_when_the_next_line_starts_after_it() -> None:
    # Given a split that ends where a line starts
    reader = Reader()
    reader.open("file", start=0, end=8)
    # When exactly its line is read
    reader.feed(b'{"a":1}\n')
    reader.read()
    # Then it needs no more input, and ignores it
    assert reader.done
    assert not reader.needs_input
    reader.feed(b'{"a":2}\n')
    assert reader.read() is None
    assert reader.close().rows == 1


def test_the_counts_have_an_error_if_a_split_is_closed_too_early() -> None:
    reader = Reader()
    reader.open("file")
    reader.feed(b'{"a":1}\n{"a"')
    reader.read()
    counts = reader.close()
    assert (counts.rows, counts.error) == (1, "not read to its end: closed at byte 8")


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: array("B", data)])
def test_any_buffer_can_be_fed(make: Callable[[bytes], bytes]) -> None:
    reader, result = Reader(), ReadResult()
    read_split(reader, result, [make(b'{"a":'), make(b"1}\n")], "file")
    result.add(reader.flush())
    assert result.rows == [{"a": "1"}]


def test_calls_out_of_order_are_refused_with_a_message() -> None:
    reader = Reader()
    for call in (reader.read, reader.close, reader.end_of_input, lambda: reader.feed(b""), lambda: reader.done):
        with pytest.raises(RuntimeError, match="no split is open"):
            call()
    reader.open("file")
    with pytest.raises(RuntimeError, match="file is open"):
        reader.open("other")
    reader.feed(b"{}")
    with pytest.raises(RuntimeError, match="not read yet"):
        reader.feed(b"{}")


def test_a_column_can_be_moved_out_once() -> None:
    reader, result = Reader(), ReadResult()
    read_split(reader, result, [b'{"a":1}'], "file")
    batch = reader.flush()
    assert batch is not None
    column = batch.column(1)
    with pytest.raises(ValueError, match="column 1 was already taken"):
        batch.column(1)
    with pytest.raises(IndexError, match="no column 2: the batch has 2 columns"):
        batch.column(2)
    assert pa.array(column, pa.string()).to_pylist() == ["1"]
    with pytest.raises(ValueError, match="already exported"):
        pa.array(column, pa.string())
    assert reader.flush() is None


def test_an_exported_column_is_valid_without_its_batch_and_reader() -> None:
    # Given several batches of one reader, which reserves the memory of the last batch for the next
    reader = Reader(flush_bytes=1001, column_limit=1)
    reader.open("file")
    reader.feed(b"".join(b'{"a":"%04d"}\n' % number for number in range(1000)))
    # When
    columns = []
    while (batch := reader.read()) is not None:
        columns.append(pa.array(batch.column(1), pa.string()))
    reader.end_of_input()
    assert reader.read() is None
    reader.close()
    last_batch = reader.flush()
    assert last_batch is not None
    columns.append(pa.array(last_batch.column(1), pa.string()))
    del reader, batch, last_batch
    gc.collect()
    # Then
    assert len(columns) > 3
    for column in columns:
        column.validate(full=True)
    assert pa.chunked_array(columns).to_pylist() == [f"{number:04d}" for number in range(1000)]


def test_other_threads_run_while_it_reads() -> None:
    # Given a call that takes long, and a thread that records the time
    reader = Reader(flush_bytes=1 << 29)
    reader.open("file")
    reader.feed(b'{"a":1,"b":"text","c":[1,2,3]}\n' * 2_000_000)
    recorded: list[float] = []
    stop = threading.Event()

    def record_times() -> None:
        while not stop.is_set():
            recorded.append(time.perf_counter())

    thread = threading.Thread(target=record_times)
    thread.start()
    # When
    started = time.perf_counter()
    reader.read()
    ended = time.perf_counter()
    stop.set()
    thread.join()
    # Then it ran in the middle of the call, not only when the call took and returned the GIL
    quarter = (ended - started) / 4
    assert any(started + quarter < moment < ended - quarter for moment in recorded)


def test_the_examples_in_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "native" / "README.md").read_text()
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(example, {})
    assert pq.read_table("example.parquet").column("another").to_pylist() == ["key"]


def test_the_stub_has_the_names_and_signatures_of_the_compiled_module(tmp_path: Path) -> None:
    # When
    command = [sys.executable, "-m", "mypy.stubtest", "ndjson_arrow"]
    stubtest = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    # Then
    assert stubtest.returncode == 0, stubtest.stdout + stubtest.stderr
