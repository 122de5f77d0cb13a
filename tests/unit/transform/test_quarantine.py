"""The quarantine: what a record says, how much may be written, and that lost or changed records are found."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ndjson_arrow import Reader, Reject

from lake.errors import AuditError
from lake.manifest import Lane, Manifest, ObjectVersion
from tests.unit.transform.test_run_task import PARTITION, run, version
from transform import quarantine_writer
from transform.audit import audit
from transform.quarantine_writer import (
    MAX_EXPANSION,
    QuarantineFiles,
    encode_record,
    file_record,
    line_record,
    read_back,
)
from transform.task_model import Split

FILE = ObjectVersion("input", "ä/a.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")


REFERENCE = {"source": "s3://input/ä/a.json", "version": "v1"}


FILE_RECORD = {"kind": "file", **REFERENCE, "offset": 0, "length": 100}


def rejects_of(body: bytes, **limits: int) -> list[Reject]:
    reader = Reader(**limits)  # type: ignore[arg-type]
    reader.open("x")
    reader.feed(body)
    reader.end_of_input()
    reader.read()
    reader.close()
    return reader.take_rejects()


def test_text_is_kept_as_text_bytes_as_base64_and_large_lines_by_reference() -> None:
    rejects = rejects_of("äö\n".encode() + b"\xff\xfe\n" + b"y" * 100 + b"\n", max_line_bytes=50)
    text, binary, large = (line_record(FILE, reject) for reject in rejects)
    assert text == {"kind": "line", **REFERENCE, "offset": 0, "length": 4, "reason": "not JSON", "line": "äö"}
    assert binary["reason"] == "invalid UTF-8"
    assert base64.b64decode(str(binary["line_base64"])) == b"\xff\xfe"
    assert large == {"kind": "line", **REFERENCE, "offset": 8, "length": 100, "reason": "line too long"}


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


def test_records_of_single_lines_are_bounded_by_the_input(tmp_path: Path) -> None:
    # Given a thousand rejected lines of two bytes, whose records are fifty times as large
    rejects, split = rejects_of(b"x\n" * 1000), Split(FILE, 10, 2010)
    files = QuarantineFiles(tmp_path, 1, lambda path, _: finished.append(path.read_bytes().splitlines(keepends=True)))
    finished: list[list[bytes]] = []
    for _ in range(11):
        files.write_rejects(split, {"not JSON": 1500, "too deep": 1}, rejects)
    # Then there is room for small files, and once it is used up the first lines are kept, as the size allows
    sizes = [sum(map(len, lines[:-2])) for lines in finished]
    assert sizes[0] > 2 * MAX_EXPANSION * 2000
    assert abs(sizes[-1] - MAX_EXPANSION * 2000) <= 200
    records = [encode_record(line_record(FILE, reject)) for reject in rejects]
    assert finished[-1][:-2] == records[: len(finished[-1]) - 2]
    # And the others are counted by their reason
    counted = {"kind": "lines", **REFERENCE, "offset": 10, "length": 2000}
    assert [json.loads(line) for line in finished[-1][-2:]] == [
        {**counted, "reason": "not JSON", "count": 1502 - len(finished[-1])},
        {**counted, "reason": "too deep", "count": 1},
    ]


BODY = b'{"a":1}\nbroken\n[1]\n' + b"x\n" * 1500


GONE = ObjectVersion("input", "gone.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")


Records = list[dict[str, Any]]


def convert_and_audit() -> None:
    files = {"a.json": BODY}
    tasks, results, _ = run(files, 1 << 20, 1 << 20)
    manifest = Manifest("m", Lane.BATCH, PARTITION, "", (version("a.json", BODY),))
    audit(manifest, tasks, results)


FAULTS: dict[str, Callable[[Records], Records]] = {
    "all are lost": lambda _: [],
    "the number of the others is lost": lambda records: [record for record in records if record["kind"] == "line"],
    "one is lost": lambda records: records[1:],
    "one is doubled": lambda records: [*records, *records[:1]],
    "another reason": lambda records: [{**record, "reason": "too deep"} for record in records],
    "another file": lambda records: [{**record, "version": "v0"} for record in records],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_writer_that_changes_what_is_quarantined_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a writer of the quarantine with a fault
    write = QuarantineFiles.write
    monkeypatch.setattr(QuarantineFiles, "write", lambda self, records: write(self, FAULTS[fault](list(records))))

    # When, Then
    with pytest.raises(AuditError, match=r"a\.json"):
        convert_and_audit()


def test_a_record_that_is_not_json_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_writer, "encode_record", lambda record: encode_record(record)[:-3] + b"\n")
    with pytest.raises(AuditError, match=r"record 1 of 0\.jsonl"):
        convert_and_audit()


def test_a_file_is_read_back_by_reason(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    record = {"source": "s3://input/ä.json", "version": "v1", "reason": "not JSON"}
    lines: list[dict[str, Any]] = [{"kind": "line", **record}, {"kind": "lines", **record, "count": 5}]
    path.write_bytes(b"".join(encode_record(line) for line in [*lines, file_record(GONE, "it was deleted")]))
    content = read_back(path)
    assert (content.records, content.size) == (3, path.stat().st_size)
    assert content.counts == {
        ("line", "s3://input/ä.json", "v1", "not JSON"): 6,
        ("file", "s3://input/gone.json", "v1", "it was deleted"): 1,
    }
