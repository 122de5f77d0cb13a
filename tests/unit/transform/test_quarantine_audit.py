"""What is quarantined is counted in the written files: a writer that loses, doubles or changes records is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import AuditError
from lake.manifest import Lane, Manifest, ObjectVersion
from tests.unit.transform.test_run_task import PARTITION, run, version
from transform import quarantine_writer
from transform.audit import audit, check_excluded
from transform.quarantine_writer import QuarantineFiles, encode_record, file_record, read_back

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transform.quarantine_writer import QuarantineContent

BODY = b'{"a":1}\nbroken\n[1]\n' + b"x\n" * 1500
GONE = ObjectVersion("input", "gone.json", "e1", 100, "2026-03-04T12:00:00Z", "v1")
Records = list[dict[str, Any]]


def convert_and_audit() -> None:
    files = {"a.json": BODY}
    tasks, results, _ = run(files, 1 << 20, 1 << 20)
    manifest = Manifest("m", Lane.BATCH, PARTITION, "", (version("a.json", BODY),))
    audit(manifest, {}, tasks, results)


def drop_all(records: Records) -> Records:
    return []


def drop_the_remainder(records: Records) -> Records:
    return [record for record in records if record["kind"] == "line"]


def drop_one(records: Records) -> Records:
    return records[1:]


def double_one(records: Records) -> Records:
    return [*records, records[0]]


def name_another_reason(records: Records) -> Records:
    return [{**record, "reason": "too deep"} for record in records]


def name_another_file(records: Records) -> Records:
    return [{**record, "version": "v0"} for record in records]


def test_a_faithful_writer_passes() -> None:
    convert_and_audit()


@pytest.mark.parametrize(
    "fault", [drop_all, drop_the_remainder, drop_one, double_one, name_another_reason, name_another_file]
)
def test_a_writer_that_changes_what_is_quarantined_is_found(
    fault: Callable[[Records], Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a writer of the quarantine with a fault
    write = QuarantineFiles.write
    monkeypatch.setattr(QuarantineFiles, "write", lambda self, records: write(self, fault(list(records))))

    # When, Then
    with pytest.raises(AuditError, match=r"a\.json"):
        convert_and_audit()


def test_a_writer_that_writes_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuarantineFiles, "write", lambda self, records: None)
    with pytest.raises(AuditError, match=r"1501 lines .* quarantine holds 0"):
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


@pytest.mark.parametrize("fault", [drop_all, double_one, name_another_reason, name_another_file])
def test_excluded_files_that_are_not_quarantined_are_found(fault: Callable[[Records], Records], tmp_path: Path) -> None:
    # Given a manifest with an excluded file, and the quarantine that a writer with a fault made of it
    manifest = Manifest("m", Lane.BATCH, PARTITION, "", (GONE,))
    contents: list[QuarantineContent] = []
    writer = QuarantineFiles(tmp_path, 1 << 20, lambda _, content: contents.append(content))
    writer.write(fault([json.loads(encode_record(file_record(GONE, "it was deleted")))]))
    writer.close()

    # When, Then
    with pytest.raises(AuditError, match=r"gone\.json"):
        check_excluded(manifest, {GONE: "it was deleted"}, contents)
