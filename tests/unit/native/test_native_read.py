"""``ndjson_arrow.read``: a file as an Arrow stream, compared with the oracle; files of other formats are recognised."""

import gzip
import io
import os
import pickle
import re
import tarfile
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import duckdb
import ndjson_arrow
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ndjson_arrow import Reject, RejectedLineError, UnreadableFileError

from tests.fuzz.fuzz_reader import make_input
from tests.oracle import ndjson_oracle as oracle

BODY = b'{"a": 1.10, "B": "x"}\nnot a row\n{"c": [1, 2], "a": null}\n'


ROWS = [
    {"a": "1.10", "__b": "x", "c": None, "_rescued": None},
    {"a": None, "__b": None, "c": "[1, 2]", "_rescued": None},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.ndjson"
    path.write_bytes(BODY)
    return path


def ignore(_: Reject) -> None:
    """Take rejects and drop them."""


def test_a_rejected_line_is_an_error_for_a_caller_that_takes_none(file: Path) -> None:
    with pytest.raises(RejectedLineError, match=r"a\.ndjson: the line at byte 22 is not a row: not JSON") as raised:
        ndjson_arrow.read(file).read_all()
    assert raised.value.reject.line == b"not a row"
    # And so it is in another process
    with pytest.raises(RejectedLineError, match=re.escape(str(raised.value))) as passed_on:
        raise pickle.loads(pickle.dumps(raised.value))
    assert passed_on.value.reject.line == b"not a row"


@pytest.mark.parametrize(
    ("body", "concatenated", "hint"),
    [
        ("a,b\n1,2\n".encode("utf-16"), False, "it looks like text in UTF-16 or UTF-32; expected one JSON object on"),
        (b'{"a":1}\r{"a":2}\r', False, "without newlines between them"),
        (b'{"a":1}{"a":2}' * 10_000, False, "without newlines between them"),
        (b'{"a":1}{"a":2}' * 10_000 + b"\nx\n", False, "pass rejects="),
        (b'[{"a":1}{"a":2}]', False, "pass rejects="),
        (b'Obj\x01\x04\x16avro.schema\x8a\x01{"type":"int"}\x00', True, "an Avro file; expected JSON"),
        (b"a,b\n1,2\n", True, "it looks like CSV; expected JSON objects"),
        (gzip.compress(gzip.compress(b"{}" * 1000)), True, "compressed twice; expected JSON objects"),
        (b'\x1e{"a":1}\n\x1e{"a":2\x1e}\n', True, "at byte 10 .*pass rejects="),
        # The option that the hint would name is already set: 'convert' read the file again in each call
        (b"[\x1e1", True, "pass rejects="),
        (b"{'a': 1}{'a': 2}", True, "pass rejects="),
        (b'{"a": "' + b"x" * 100_000 + b'\n"}', True, "pass rejects="),
        (b'ORCHESTRATOR {"a":1}', True, "pass rejects="),
        (b'PAR1 {"a":1}', True, "pass rejects="),
        (b'SQLite format 3 {"a":1}', True, "pass rejects="),
        (b'ARROW1 {"a":1}', True, "pass rejects="),
        (b"{a:1,b:2},\n{a:3,b:4},\n", True, "pass rejects="),
    ],
)
def test_the_error_names_a_format_that_the_file_seems_to_have(body: bytes, concatenated: bool, hint: str) -> None:
    with pytest.raises(RejectedLineError, match=hint):
        ndjson_arrow.read(io.BytesIO(body), concatenated=concatenated).read_all()


def test_polars_and_duckdb_take_the_stream(file: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("stream", ndjson_arrow.read(file, rejects=ignore))
        rows = connection.sql("SELECT a, c FROM stream").fetchall()
    assert rows == [("1.10", None), (None, "[1, 2]")]
    assert pl.from_arrow(ndjson_arrow.read(file, rejects=ignore)).to_dicts() == ROWS  # type: ignore[union-attr]


def test_with_named_columns_a_file_is_read_only_once(file: Path) -> None:
    # Given a pipe, which can be read only once
    output, end = os.pipe()
    with os.fdopen(end, "wb") as pipe:
        pipe.write(BODY)
    with os.fdopen(output, "rb") as source:
        # When one column is requested
        rows = ndjson_arrow.read(source, columns=["a"], rejects=ignore).read_all().to_pylist()
    # Then the other members are in _rescued, verbatim
    assert rows == [{"a": "1.10", "_rescued": '{"B":"x"}'}, {"a": None, "_rescued": '{"c":[1, 2]}'}]


def test_a_pipe_gives_all_its_columns() -> None:
    output, end = os.pipe()
    with os.fdopen(end, "wb") as pipe:
        pipe.write(gzip.compress(BODY))
    with os.fdopen(output, "rb") as source:
        assert ndjson_arrow.read(source, rejects=ignore).read_all().to_pylist() == ROWS


@pytest.mark.parametrize("columns", [None, ["a"]])
def test_a_pipe_that_does_not_wait_is_an_error_and_not_the_end(columns: list[str] | None) -> None:
    output, end = os.pipe()
    os.set_blocking(output, False)
    with os.fdopen(output, "rb") as source, os.fdopen(end, "wb"), pytest.raises(BlockingIOError, match="set_blocking"):
        ndjson_arrow.read(source, columns=columns).read_all()


@pytest.mark.parametrize("columns", [None, ["a"]])
def test_a_truncated_file_is_an_error_and_not_a_short_result(columns: list[str] | None) -> None:
    body = gzip.compress(b'{"a": 1}\n' * 1_000_000)[:-100]
    with pytest.raises(UnreadableFileError, match="truncated gzip at byte"):
        ndjson_arrow.read(io.BytesIO(body), columns=columns).read_all()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"columns": ["A b"]}, "A b"), ({"columns": ["a", "a"]}, "a"), ({"batch_bytes": 0}, "flush_bytes")],
)
def test_wrong_options_are_refused_before_the_file_is_opened(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ndjson_arrow.read("no such file", **options)


@given(st.randoms(use_true_random=False))
def test_rows_and_rejects_match_the_oracle(rng: Random) -> None:
    body = make_input(rng)
    expected = oracle.read(body)
    rejects: list[Reject] = []
    rows = ndjson_arrow.read(io.BytesIO(body), rejects=rejects.append).read_all().to_pylist()
    assert [{name: value for name, value in row.items() if value is not None} for row in rows] == [
        row for _, row in expected.rows
    ]
    assert [(item.offset, item.length, item.reason, item.line) for item in rejects] == expected.rejects


def recognise(lines: list[bytes | None], rows: int, rejects: dict[str, int], *, opening: bytes | None) -> str | None:
    """``opening``: the first rejected line, if it is the first line of the file."""
    counts: Any = SimpleNamespace(rows=rows, rejects=rejects, elements=False)
    offset = 100 if opening is None else 0
    found: Any = [SimpleNamespace(line=line, head=opening, offset=offset) for line in lines]
    return ndjson_arrow.find_other_format(counts, found, concatenated=False)


@pytest.mark.parametrize(
    ("lines", "rows", "name"),
    [
        ([b"{", b'  "a": 1', b"}"], 0, "printed over many lines; expected one JSON object on each line, or conc"),
        ([b'{"type":"FeatureCollection","features":[', b'{"type":"Feature"},'], 1, "printed over many lines"),
        ([b'{"layers": [', b'{ "type": "x", "bbox": {', b'"a": 1'], 0, "printed over many lines"),
        ([b'\xef\xbb\xbf{"id":"}\\"",', b'  "a": 1,'], 0, "printed over many lines"),
        ([b'{ "a": 1', b', "b": 2', b"}"], 0, "printed over many lines"),
        # As jq --seq prints it: an empty object in an array is a row
        ([b"\x1e{", b'  "a": [', b"  ]", b"}"], 1, "printed over many lines"),
        ([b'{"a":1}{"a":2}'], 0, "objects without newlines between them; expected one JSON object on each line, or"),
        ([b"\xef\xbb\xbf{} {}", b'{"a":1} {"a":2}'], 0, "objects without newlines"),
        ([b"a,b,c", b"1,2,3", b"4,5,6"], 0, "CSV"),
        ([b"2026-11-20 08:00:00,123,ok", b"2026-11-20 08:00:01,4567,ok"], 0, "CSV"),
        ([b"a\tb", b"1\t2"], 0, "tab-separated"),
        ([b"PAR1\x15\x04"], 0, "a Parquet file"),
        ([b"SQLite format 3\x00\x10"], 0, "an SQLite database"),
        ([b"1.txt".ljust(257, b"\0") + b"ustar\x0000"], 153, "a tar archive"),
        ([b"PK\x03\x04\x14"], 153, "a ZIP archive"),
        ([b"\x04\x22\x4d\x18", b"x"], 1, "an LZ4 file"),
        ([b'a\t{"b":1,"c":2}', b"1\t{}"], 0, "tab-separated"),
        ([b"payload,id", b'"{""a"":1}",5', b'"[3]",6'], 0, "CSV"),
        ([b"name,price [EUR]", b'"Pirrip, Philip",5'], 0, "CSV"),
        ([b'2026\tINFO\ta, b {"c":1}', b'2026\tINFO\ta {"c":1}'], 0, "tab-separated"),
        ([b'{\x00"\x00', b'\x00{\x00"\x00'], 0, "UTF-16"),
        ([b'\x00[\x00{\x00"\x00,', b'\x00{\x00"\x00,'], 0, "UTF-16"),
        ([b"\x00", b'{\x00"\x00a'], 0, "UTF-16"),
        ([b"<134>Sep 19 08:26:10 host CEF:0|a|b", b"CEF:0|a|c"], 0, "a CEF or LEEF log"),
        ([b"time:[2026]\thost:::1\turl:http://a\r", b"time:[2026]\thost:b\turl:"], 0, "an LTSV log"),
        ([b"http://a\thttp://b", b"http://c\thttp://d"], 0, "tab-separated"),
        ([b'\x1e{"a":1,"b":2}', b'\x1e{"a":3,"b":4}'], 0, "a JSON text sequence"),
        ([b"\x1f\x8b\x08"], 0, "a gzip file that was compressed twice"),
        ([b"BZh91AY&SY"], 0, "a bzip2 file that was compressed twice"),
        ([b"\x28\xb5\x2f\xfd\x60"], 0, "a Zstandard file that was compressed twice"),
        ([b"<?xml version='1.0'?>", b"<a/>"], 0, "XML"),
    ],
)
def test_other_formats_are_named(lines: list[bytes | None], rows: int, name: str) -> None:
    text = recognise(lines, rows, {"not JSON": len(lines)}, opening=lines[0])
    assert text is not None
    assert name in text
    assert "; expected one JSON object on each line" in text


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        ([], 0),
        ([b'["a","b"]', b'["c","d"]'], 0),
        ([b"broken"], 5),
        # A record that its producer has compressed, among others; a text; a line that is too large to keep
        ([b"\x1f\x8b\x08", b"x"], 5),
        ([b"x" * 257 + b"ustar"], 5),
        ([None, b"PK\x03\x04"], 5),
        ([b'{"a":"b CEF:0|c'], 0),
        ([b"a,b", b"1,2"], 1),
        ([b'{"a":1,', b'{"a":2,'], 0),
        ([b'{"a":1},', b"x"], 0),
        ([b'{"a":1,"b":', b'{"a":2,"b":3'], 0),
        ([b'{"a":1,"b":', b'{"a":2,"b":"x'], 0),
        ([b'{"a":['], 0),
        ([b'{"a":"[,', b"x"], 0),
        ([b"{"], 1_000_000),
        ([b"["], 1_000_000),
        ([b"[", b"x"], 1),
        # Torn rows among good ones: two of them, or all, end where JSON can be broken
        ([b'{"a":1,"b":[', b'{"a":2,"b":[1],"c":', b'{"a":3,"b":"x'], 2),
        ([b'{"a":1,"b":[', b'{"a":2,"b":['], 1),
        ([b'{"a":1,', b'"b":2}', b'{"a":3,"b":4'], 2),
        ([b'{"a":"x', b', y"}'], 0),
        ([b'{"a":1}{"a":2}'], 1),
        ([b'{"a":1,"b"', b'"c":2,"d":3}'], 0),
        ([b"a,b", b"1,2,3"], 0),
        ([b"2026-11-20 08:00:00,123 [INFO] a", b"2026-11-20 08:00:01,456 [INFO] b"], 0),
        ([b"2026-11-20T08:00:00,123Z [INFO] a", b"2026-11-20T08:00:01,456Z [INFO] b"], 0),
        ([b"E, [2026-11-20T08:00:00.123456 #48598] ERROR -- a", b"I, [2026-11-20T08:00:01.456 #48598] INFO -- b"], 0),
        ([b',{"a":1}', b',{"a":2}'], 0),
        ([b'org,example)/ 2026 {"a":1,"b":2}', b'org,example)/a 2026 {"a":3,"b":4}'], 0),
        ([b'stdout F {"a":1,"b":2}', b'stdout F {"a":3,"b":4}'], 0),
        ([rb'line="{\"a\":1,\"b\":2}" F', rb'line="{\"a\":3,\"b\":4}" F'], 0),
        # Minutes, if each quote were followed to the end of the line
        ([rb"\"" * 200_000], 0),
        ([rb'"{\"a\":1,\"b\":2}"', rb'"{\"a\":3,\"b\":4}"'], 0),
        ([b"<34>1 2026-11-20T08:00:00Z host su - a", b"<35>1 2026-11-20T08:00:01Z host su - b"], 0),
        ([b"\x1b[1;31mFirst\x1b[0m", b"\x1b[1;31mSecond\x1b[0m"], 0),
    ],
)
def test_broken_lines_are_not_another_format(lines: list[bytes | None], rows: int) -> None:
    assert recognise(lines, rows, {"not JSON": len(lines)}, opening=lines[0] if lines else None) is None


def test_an_archive_is_recognised_by_a_first_row_that_is_too_large_to_keep() -> None:
    row = b'{"a": "%s"}' % (b"x" * 100_000)
    archive, member = io.BytesIO(), tarfile.TarInfo("a.ndjson")
    member.size = len(row)
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(member, io.BytesIO(row))
    with pytest.raises(RejectedLineError, match="it looks like a tar archive"):
        ndjson_arrow.read(io.BytesIO(archive.getvalue())).read_all()


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (b'{"text":"%s"} ' % (b"x" * 60_000) * 20, "objects without newlines between them"),
        (b'{"messageType":"DATA_MESSAGE","logEvents":["%s"]}' % (b"x" * 100_000) * 20, "objects without newlines"),
        (b'{"messageType":"DATA_MESSAGE","logEvents":["%s"]}\n' % (b"x" * 2_000_000) * 2, "pass rejects="),
        (b"12345 " * 20_000, "pass rejects="),
        # One object; a string that looks like two
        (b'{"text":"%s"' % (b"x" * 100_000), "pass rejects="),
        (b'{"text":"} {}%s"' % (b"x" * 100_000), "pass rejects="),
    ],
)
@pytest.mark.parametrize("max_line_bytes", [6000, 90_000, 1 << 20])
def test_a_line_that_is_not_kept_is_recognised_by_its_first_bytes(
    body: bytes, advice: str, max_line_bytes: int
) -> None:
    # Given a file that is one line, too large for a row or for the sample
    rows = ndjson_arrow.read(io.BytesIO(body), max_line_bytes=max_line_bytes)
    # Then
    with pytest.raises(RejectedLineError, match=advice):
        rows.read_all()


def test_all_rejected_lines_count_and_not_only_the_kept_ones() -> None:
    assert recognise([b"{", b'"a": 1'], 1000, {"not JSON": 1000}, opening=b"{") is None
    reasons = {"not JSON": 900, "trailing characters": 101}
    assert recognise([b"{", b'"a": 1'], 1000, reasons, opening=b"{") is not None
