"""The audit accepts only consistent results; the counted quarantine is read back from its files."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ndjson_arrow import Reader, Reject

from lake.commit import PendingObject, SourceCount
from lake.errors import AuditError
from lake.manifest import Lane, Manifest, ObjectVersion
from tests.unit.transform.job import PARTITION, pending, task_of
from tests.unit.transform.test_run_task import run, version
from transform import quarantine_writer
from transform.audit import audit
from transform.plan_attempt import split_files
from transform.quarantine_writer import (
    MAX_EXPANSION,
    QuarantineContent,
    QuarantineFiles,
    encode_record,
    file_record,
    line_record,
)
from transform.task_model import Split, SplitResult, TaskResult

PLAIN = ObjectVersion("input", "a.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")
PACKED = ObjectVersion("input", "b.gz", "e2", 10, "2026-03-04T12:00:00Z", "v2")
MANIFEST = Manifest("m", Lane.BATCH, PARTITION, "2026-03-04T12:00:00Z", (PLAIN, PACKED))
LEFT, RIGHT = split_files([PLAIN], (), 50)
WHOLE = Split(PACKED, 0, 10)

NOT_TILED = "do not cover it exactly once"


def counted(split: Split, rows: int, **changes: object) -> SplitResult:
    result = SplitResult(split, rows + 2, rows, 1, {"not JSON": 1}, split.size, split is WHOLE, f"at {split.start}")
    return replace(result, **changes)  # type: ignore[arg-type]


def task_result(number: int, objects: tuple[PendingObject, ...], *splits: SplitResult) -> TaskResult:
    rejected = {
        ("line", item.split.file.uri, item.split.file.version, reason): count
        for item in splits
        for reason, count in item.rejects.items()
    }
    quarantine = (pending(f"q{number}", len(splits)),)
    content = QuarantineContent(1, len(splits), rejected)
    return TaskResult("m", number, objects, quarantine, splits, (), (), 5, (content,))


TASKS = (task_of(LEFT), task_of(RIGHT, WHOLE, number=1))
GOOD = (
    task_result(0, (pending("k0", 3),), counted(LEFT, 3)),
    task_result(1, (pending("k1", 4), pending("k2", 1)), counted(RIGHT, 4), counted(WHOLE, 1, bytes=999)),
)


def test_results_that_add_up_pass_in_the_order_of_the_manifest() -> None:
    plain, packed = audit(MANIFEST, TASKS, tuple(reversed(GOOD)))
    assert plain == SourceCount(PLAIN.uri, PLAIN.version, 100, 11, 7, 2, {"not JSON": 2}, "at 0", None)
    assert packed == SourceCount(PACKED.uri, PACKED.version, 10, 3, 1, 1, {"not JSON": 1}, "at 0", None)


def test_an_excluded_file_counts_nothing_and_has_its_reason() -> None:
    tasks = (task_of(LEFT), task_of(RIGHT, number=1), replace(task_of(number=2), excluded=((PACKED, "gone"),)))
    content = QuarantineContent(1, 1, {("file", PACKED.uri, PACKED.version, "gone"): 1})
    reference = TaskResult("m", 2, (), (pending("q2", 1),), (), (), (), 5, (content,))
    results = (GOOD[0], task_result(1, (pending("k1", 4),), counted(RIGHT, 4)), reference)
    _, packed = audit(MANIFEST, tasks, results)
    assert packed == SourceCount(PACKED.uri, PACKED.version, 10, 0, 0, 0, {}, None, "gone")
    with pytest.raises(AuditError, match=r"1 files of s3://input/b\.gz .* holds 0"):
        audit(MANIFEST, tasks, (*results[:2], replace(reference, quarantine=(), quarantine_contents=())))


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (GOOD[:1], "2 tasks returned 1 result"),
        ((GOOD[0], GOOD[0]), "or results of other tasks"),
        (
            (GOOD[0], replace(GOOD[1], splits=(GOOD[1].splits[1],), objects=(pending("k1", 1),))),
            NOT_TILED,
        ),
        ((replace(GOOD[0], splits=(), objects=()), GOOD[1]), NOT_TILED),
        # No part of a file.
        ((GOOD[0], replace(GOOD[1], splits=GOOD[1].splits[:1], objects=(pending("k1", 4),))), NOT_TILED),
        ((replace(GOOD[0], splits=GOOD[0].splits * 2, objects=(pending("k0", 6),)), GOOD[1]), NOT_TILED),
        ((replace(GOOD[0], objects=(pending("k0", 2),)), GOOD[1]), "footers count 2"),
        ((replace(GOOD[0], splits=(counted(LEFT, 3, lines=6),)), GOOD[1]), "neither row nor reject nor blank"),
        ((replace(GOOD[0], splits=(counted(LEFT, 3, bytes=49),)), GOOD[1]), "do not add up to its 100 bytes"),
        ((replace(GOOD[0], objects=(pending("k1", 3),)), GOOD[1]), "objects of the same name"),
        ((replace(GOOD[0], quarantine=()), GOOD[1]), "are not the files that it wrote"),
        ((replace(GOOD[0], quarantine=(), quarantine_contents=()), GOOD[1]), "quarantine holds 1"),
        (
            (replace(GOOD[0], splits=(counted(Split(replace(PLAIN, key="x"), 0, 50), 3),)), GOOD[1]),
            "not one of its files",
        ),
    ],
)
def test_results_that_do_not_add_up_are_refused(results: tuple[TaskResult, ...], message: str) -> None:
    with pytest.raises(AuditError, match=message):
        audit(MANIFEST, TASKS, results)


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
    # Then there is room for small files; once it is used up, the first lines are kept, up to the size limit
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
Records = list[dict[str, Any]]


def convert_and_audit() -> tuple[SourceCount, ...]:
    tasks, results, _ = run({"a.json": BODY}, 1 << 20, 1 << 20)
    return audit(Manifest("m", Lane.BATCH, PARTITION, "", (version("a.json", BODY),)), tasks, results)


def test_lines_of_which_the_quarantine_has_a_part_are_counted() -> None:
    (source,) = convert_and_audit()
    assert source.rejects == {"not JSON": 1501, "not an object": 1}


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
    # Given a quarantine writer with a fault
    write = QuarantineFiles.write
    monkeypatch.setattr(QuarantineFiles, "write", lambda self, records: write(self, FAULTS[fault](list(records))))

    # When, Then
    with pytest.raises(AuditError, match=r"a\.json"):
        convert_and_audit()


def test_a_record_that_is_not_json_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_writer, "encode_record", lambda record: encode_record(record)[:-3] + b"\n")
    with pytest.raises(AuditError, match=r"record 1 of 0\.jsonl"):
        convert_and_audit()
