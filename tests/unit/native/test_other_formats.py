from __future__ import annotations

import pytest
from ndjson_arrow import recognise


@pytest.mark.parametrize(
    ("lines", "rows", "name"),
    [
        (
            [b"{", b'  "a": 1', b"}"],
            0,
            "printed over many lines; expected one JSON object on each line, or concatenated",
        ),
        ([b'{"a":1}{"a":2}'], 0, "objects without newlines between them; expected one JSON object on each line, or"),
        ([b"\xef\xbb\xbf{} {}", b'{"a":1} {"a":2}'], 0, "objects without newlines"),
        ([b"a,b,c", b"1,2,3", b"4,5,6"], 0, "CSV"),
        ([b"a\tb", b"1\t2"], 0, "tab-separated"),
        ([b"PAR1\x15\x04"], 0, "a Parquet file"),
        ([b"PK\x03\x04rest"], 0, "ZIP"),
        ([b"\xff\xfe{\x00"], 0, "UTF-16"),
        ([b"<?xml version='1.0'?>", b"<a/>"], 0, "XML"),
    ],
)
def test_other_formats_are_named(lines: list[bytes], rows: int, name: str) -> None:
    text = recognise(lines, rows)
    assert text is not None
    assert name in text
    assert "; expected one JSON object on each line" in text


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        ([], 0),
        ([None], 0),
        ([b'["a","b"]', b'["c","d"]'], 0),
        ([b"broken"], 5),
        ([b"broken"], 0),
        ([b"a,b", b"1,2"], 1),
        ([b'{"a":1,', b'{"a":2,'], 0),
        ([b'{"a":1}{"a":2}'], 1),
        ([b'{"a":1,"b"', b'"c":2,"d":3}'], 0),
        ([b"a,b", b"1,2,3"], 0),
    ],
)
def test_broken_lines_are_not_another_format(lines: list[bytes | None], rows: int) -> None:
    assert recognise(lines, rows) is None


@pytest.mark.parametrize("line", [b"{", b"["])
def test_a_torn_line_among_rows_does_not_reject_the_file(line: bytes) -> None:
    # Given a file whose only broken line is its last one, or its first one.
    assert recognise([line], 1_000_000, opens_file=False) is None
    assert recognise([line], 1_000_000, opens_file=True) is None
    # Given a short file, most lines of which are broken.
    assert recognise([line, b"x"], 1, opens_file=False) is None
