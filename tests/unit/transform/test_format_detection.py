from __future__ import annotations

import pytest

from transform.format_detection import recognise


@pytest.mark.parametrize(
    ("lines", "rows", "what"),
    [
        ([b"[", b'{"a":1},', b"]"], 1, "a JSON array over many lines"),
        ([b"\xef\xbb\xbf[ ", b'{"a":1},'], 0, "a JSON array over many lines"),
        ([b"{", b'  "a": 1', b"}"], 0, "printed over many lines"),
        ([b"a,b,c", b"1,2,3", b"4,5,6"], 0, "CSV"),
        ([b"a\tb", b"1\t2"], 0, "tab-separated"),
        ([b"PAR1\x15\x04"], 0, "a Parquet file"),
        ([b"PK\x03\x04rest"], 0, "ZIP"),
        ([b"\xff\xfe{\x00"], 0, "UTF-16"),
        ([b"<?xml version='1.0'?>", b"<a/>"], 0, "XML"),
    ],
)
def test_other_formats_get_a_sentence(lines: list[bytes], rows: int, what: str) -> None:
    sentence = recognise(lines, rows)
    assert sentence is not None
    assert what in sentence
    assert sentence.endswith("one JSON object on each line")


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
        ([b'{"a":1,"b"', b'"c":2,"d":3}'], 0),
        ([b"a,b", b"1,2,3"], 0),
    ],
)
def test_broken_lines_stay_broken_lines(lines: list[bytes | None], rows: int) -> None:
    assert recognise(lines, rows) is None


@pytest.mark.parametrize("line", [b"{", b"["])
def test_a_torn_line_among_rows_does_not_cost_the_file(line: bytes) -> None:
    # Given a file whose only broken line is its last one, or its first one.
    assert recognise([line], 1_000_000, opens_file=False) is None
    assert recognise([line], 1_000_000, opens_file=True) is None
    # And a short one, more of which is broken than not.
    assert recognise([line, b"x"], 1, opens_file=False) is None
