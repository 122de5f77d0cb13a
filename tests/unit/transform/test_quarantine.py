"""The quarantine: what a record says, how much may be written, and that lost or changed records are found."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ndjson_arrow import Reader

from lake.errors import AuditError
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.settings import ConvertSettings
from offline.output_folder import StagedFiles
from tests.unit.transform.test_run_task import PARTITION, run, version
from transform import quarantine_writer
from transform.audit import audit
from transform.quarantine_writer import (
    MAX_EXPANSION,
    QuarantineBudget,
    QuarantineFiles,
    encode_record,
    file_record,
    line_record,
    read_back,
    remainder_records,
)
from transform.run_task import run_task
from transform.task_model import Task

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


@pytest.mark.parametrize("fault", ["all are lost", "one is doubled", "another reason"])
def test_an_excluded_file_that_is_not_quarantined_once_is_found(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a manifest with an excluded file, and a writer of the quarantine with a fault
    manifest = Manifest("m", Lane.BATCH, PARTITION, "", (GONE,))
    task = Task("m", 1, PARTITION, 0, (), (), "lake", "quarantine", "", ConvertSettings())
    task = replace(task, excluded=((GONE, "it was deleted"),))
    source: Any = None
    write = QuarantineFiles.write
    monkeypatch.setattr(QuarantineFiles, "write", lambda self, records: write(self, FAULTS[fault](list(records))))
    result = run_task(task, source, StagedFiles(tmp_path), tmp_path)

    # When, Then
    with pytest.raises(AuditError, match=r"gone\.json"):
        audit(manifest, [task], [result])
