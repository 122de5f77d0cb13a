"""JSON arrays and concatenated objects: every element is a row or a reject, wherever the file is cut into chunks."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from ndjson_arrow import Reader, can_split

from tests.unit.native.reader_driver import ReadResult, chunks_of, read_file, read_split

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = [{"id": number, "text": 'a "]},[" b\n', "tags": [{"x": [number]}, []]} for number in range(50)]


def cuts_of(body: bytes) -> list[Sequence[int]]:
    """Where a file is cut into chunks: nowhere, and after each byte."""
    return [(), range(len(body))]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_an_array_on_one_line_or_many_is_its_rows(indent: int | None, compress: type[bytes]) -> None:
    body = json.dumps(ROWS, indent=indent).encode()
    for cuts in cuts_of(body):
        read = read_file(compress(body), cuts=cuts)
        assert [(row["id"], row["text"]) for row in read.rows] == [(str(row["id"]), row["text"]) for row in ROWS]
        assert [json.loads(row["tags"]) for row in read.rows] == [row["tags"] for row in ROWS]
        (counts,) = read.counts
        assert (counts.lines, counts.rows, counts.bytes, counts.elements) == (50, 50, len(body), True)


def test_what_is_no_object_is_rejected_with_its_offset() -> None:
    body = b'[1, {"a":1}, "x" ,[{"b":2}],{"a":2} y, null]'
    read = read_file(body)
    assert [(item.offset, item.reason, item.line) for item in read.rejects] == [
        (1, "not an object", b"1"),
        (13, "not an object", b'"x"'),
        (18, "not an object", b'[{"b":2}]'),
        (28, "trailing characters", b'{"a":2} y'),
        (39, "not an object", b"null"),
    ]
    assert read.rows == [{"a": "1"}]


@pytest.mark.parametrize(
    ("body", "rows", "rejects"),
    [
        (b'[{"a":1},{"a":2', 1, [(9, "not JSON"), (15, "not JSON")]),
        (b'[{"a":1}', 1, [(8, "not JSON")]),
        (b'[{"a":1},]', 1, [(9, "not JSON")]),
        (b'[{"a":"x},\n{"a":2},\n{"a":3}]', 2, [(1, "not JSON")]),
        (b'[{"a":1}] garbage\n{"a":2}\n', 2, [(10, "not JSON")]),
        (b'["a","b"]\n["c"]\n{"a":1}\n["d","e"]\n', 1, [(o, "not an object") for o in (1, 5, 11, 24)]),
    ],
)
def test_broken_arrays_lose_only_what_is_broken(body: bytes, rows: int, rejects: list[tuple[int, str]]) -> None:
    for cuts in cuts_of(body):
        read = read_file(body, cuts=cuts)
        assert (len(read.rows), [(item.offset, item.reason) for item in read.rejects]) == (rows, rejects)


def test_an_element_over_the_limit_is_rejected_and_not_kept() -> None:
    body = b'[{"a":"' + b"x" * 200 + b'"}, {"a":"' + b" " * 92 + b'"}' + b" " * 500 + b', {"a":1}]'
    for cuts in cuts_of(body):
        read = read_file(body, cuts=cuts, max_line_bytes=100)
        assert [(item.offset, item.length, item.reason, item.line) for item in read.rejects] == [
            (1, 208, "line too long", None)
        ]
        assert [len(row["a"]) for row in read.rows] == [92, 1]


def test_concatenated_objects_are_rows_by_an_option() -> None:
    body = b'{"a":1}{"a":"}{"} \n{\n "a": {"b":\n3}}x,{"a":4}\n[{"a":5}]{"a":'
    assert read_file(body).rows == []
    for cuts in cuts_of(body):
        read = read_file(body, cuts=cuts, concatenated=True)
        assert [row["a"] for row in read.rows] == ["1", "}{", '{"b":\n3}', "4", "5"]
        assert [(item.reason, item.line) for item in read.rejects] == [("not JSON", b"x,"), ("not JSON", b'{"a":')]


@pytest.mark.parametrize(
    ("body", "options", "what"),
    [(b" \n[{}]", {}, "a JSON array"), (b"{}\n", {"concatenated": True}, "concatenated JSON")],
)
def test_a_part_of_such_a_file_is_refused(body: bytes, options: dict[str, bool], what: str) -> None:
    reader, result = Reader(**options), ReadResult()  # type: ignore[arg-type]
    read_split(reader, result, chunks_of(body, []), "file", 0, 3)
    assert result.counts[0].error == f"{what} opened in part: it can only be read whole"


@pytest.mark.parametrize(
    ("head", "divisible"),
    [
        (b"{}", True),
        (b"\xef\xbb\xbf \n{", True),
        (b"x[", True),
        (b"[", False),
        (b"\xef\xbb\xbf\n [", False),
        (b"    ", False),
        (b"", False),
        (gzip.compress(b"{}")[:4], False),
    ],
)
def test_a_file_that_begins_like_an_array_is_not_divided(head: bytes, *, divisible: bool) -> None:
    assert can_split(head) is divisible
