from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from ndjson_arrow import Reader

from lake.manifest import ObjectVersion
from transform.quarantine_writer import (
    MAX_EXPANSION,
    QuarantineBudget,
    QuarantineFiles,
    encode_record,
    file_record,
    line_record,
    remainder_records,
)

if TYPE_CHECKING:
    from pathlib import Path

FILE = ObjectVersion("input", "ä/a.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")
REFERENCE = {"source": "s3://input/ä/a.json", "version": "v1"}
FILE_RECORD = {"kind": "file", **REFERENCE, "offset": 0, "length": 100}


def rejects_of(body: bytes, **limits: int) -> list[dict[str, object]]:
    reader = Reader(**limits)  # type: ignore[arg-type]
    reader.open("x")
    reader.feed(body)
    reader.end_of_input()
    reader.read()
    reader.close()
    return [line_record(FILE, reject) for reject in reader.take_rejects()]


def test_text_is_kept_as_text_bytes_as_base64_and_large_lines_by_reference() -> None:
    text, binary, large = rejects_of("äö\n".encode() + b"\xff\xfe\n" + b"y" * 100 + b"\n", max_line_bytes=50)
    assert text == {"kind": "line", **REFERENCE, "offset": 0, "length": 4, "reason": "not JSON", "line": "äö"}
    assert binary["reason"] == "invalid UTF-8"
    assert base64.b64decode(str(binary["line_base64"])) == b"\xff\xfe"
    assert large == {"kind": "line", **REFERENCE, "offset": 8, "length": 100, "reason": "line too long"}


def test_lines_that_the_sample_left_out_are_counted_by_reason() -> None:
    counted, kept = {"not JSON": 5, "too deep": 1}, {"not JSON": 2, "too deep": 1}
    assert remainder_records(FILE, 10, 60, counted, kept) == [
        {"kind": "lines", **REFERENCE, "offset": 10, "length": 50, "reason": "not JSON", "count": 3}
    ]


def test_a_record_is_one_line_whatever_is_in_it() -> None:
    line = encode_record(file_record(FILE, 'two\nlines "quoted" \u2028'))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {**FILE_RECORD, "reason": 'two\nlines "quoted" \u2028'}


def test_files_are_passed_on_at_their_target_size(tmp_path: Path) -> None:
    finished: list[tuple[bytes, int]] = []
    files = QuarantineFiles(tmp_path, 150, lambda path, content: finished.append((path.read_bytes(), content.records)))
    for _ in range(3):
        files.write([file_record(FILE, "gone")])
    files.write([])
    files.close()
    assert [records for _, records in finished] == [2, 1]
    assert all(body.count(b"\n") == records for body, records in finished)


def test_records_of_single_lines_are_bounded_by_the_input() -> None:
    # Given a thousand rejected lines of two bytes, whose records are fifty times as large
    records = rejects_of(b"x\n" * 1000)
    sizes = [len(encode_record(record)) for record in records]
    budget = QuarantineBudget()

    # When the budget of small files is used up
    assert sum(sizes[: len(budget.affordable(records, 2000))]) > 2 * MAX_EXPANSION * 2000
    for _ in range(9):
        budget.affordable(records, 2000)
    later = budget.affordable(records, 2000)

    # Then the first lines of a file are kept, as many as its size allows
    assert later == records[: len(later)]
    assert abs(sum(sizes[: len(later)]) - MAX_EXPANSION * 2000) <= max(sizes)
