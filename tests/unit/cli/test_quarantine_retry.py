"""`hybrid-router quarantine retry`: from an export that a person has edited to resubmissions, without the cloud."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.errors import ExitCode
from cli.quarantine.listing import quarantine_ls_command
from cli.quarantine.records import RecordSelection
from cli.quarantine.repair import origins_file, quarantine_export_command, quarantine_retry_command, read_origins
from lake.errors import InvalidInputError
from lake.layout import RESUBMISSIONS
from lake.manifest import Partition
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.test_quarantine_command import LATER, Stack, converted, line_of
from tests.unit.lake.world import PARTITION, World


@pytest.fixture
def stack(world: World) -> Any:
    converted(world, [line_of('{"a":1', 0), line_of('{"a":2', 10), line_of('{"a":3\r', 20)])
    converted(world, [line_of('{"a":4', 0, "b")], "b", partition=LATER)
    world.__class__ = Stack
    return world


@pytest.fixture
def exported(stack: Any, tmp_path: Path) -> Path:
    target = tmp_path / "repair.ndjson"
    quarantine_export_command(stack, target)
    return target


Retry = Callable[..., dict[str, Any]]


@pytest.fixture
def retry(stack: Any, exported: Path, answered: Answered) -> Retry:
    """Resubmit the export, with these bytes if given; return the output of ``--json``."""

    def call(repaired: bytes | None = None, *, dry_run: bool = False, code: int | None = None) -> Any:
        if repaired is not None:
            exported.write_bytes(repaired)
        return answered(quarantine_retry_command, stack, exported, dry_run=dry_run, code=code)

    return call


def contents(stack: Any) -> list[bytes]:
    keys = [key for key in stack.keys("control", RESUBMISSIONS) if key.endswith(".ndjson")]
    return sorted(stack.raw_s3.get_object(Bucket="control", Key=key)["Body"].read() for key in keys)


def test_repaired_lines_go_to_their_hours(stack: Any, retry: Retry) -> None:
    # When two of four lines are repaired, one is left empty, and an editor has changed the end of one
    body = retry(b'{"a":1}\n\n{"a":3\n{"a":4}\n', code=ExitCode.OK)
    # Then
    assert [(answer["partition"], answer["lines"]) for answer in body["resubmissions"]] == [
        (str(PARTITION), 1),
        (str(LATER), 1),
    ]
    assert (body["empty"], body["unchanged"], body["resubmitted"]) == (1, 1, 0)
    assert contents(stack) == [b'{"a":1}\n', b'{"a":4}\n']


@pytest.mark.parametrize(("first", "unchanged"), [(b"", 3), (b'{"a":1', 4), (b'{"a":1}', 3)])
def test_a_byte_order_mark_that_an_editor_has_added_is_not_a_repair(
    stack: Any, exported: Path, retry: Retry, first: bytes, unchanged: int
) -> None:
    _, *others = exported.read_bytes().replace(b"\r", b"").split(b"\n")
    body = retry(b"\r\n".join([b"\xef\xbb\xbf" + first, *others]))
    assert (body["unchanged"], contents(stack)) == (unchanged, [b'{"a":1}\r\n'] if first.endswith(b"}") else [])


@pytest.mark.parametrize(
    ("repaired", "message"),
    [
        # A file with this first line would be read as an array, and all its good lines as one element.
        (b'[{"a":1}\n{"a":2}\n\n{"a":4}\n', "line 1 of .* is still not a row: not JSON"),
        # A file without a row would be quarantined as a whole: its lines could never be exported again.
        (b'{"a":1\n{"a":2} {"b":2}\n3,x\n\n', "line 2 of .* is still not a row: trailing"),
        (b'{"a":"%s"}\n\n\n\n' % (b"x" * 1024), "line 1 of .* is still not a row: line too long"),
    ],
)
def test_nothing_is_resubmitted_while_a_changed_line_is_not_a_row(
    stack: Any, retry: Retry, repaired: bytes, message: str
) -> None:
    stack.convert = {"max_line_bytes": 1024}
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        retry(repaired)
    assert contents(stack) == []


def test_an_editors_replacement_for_invalid_utf_8_is_not_a_repair(
    stack: Any, tmp_path: Path, answered: Answered
) -> None:
    # Given a line that only has the wrong encoding, and an editor that saved the file because of another line
    binary = {"reason": "invalid UTF-8", "line_base64": base64.b64encode(b'{"a":"M\xfcller"}').decode()}
    record = line_of("", 0, "c") | binary
    del record["line"]
    converted(stack, [record, line_of('{"a":5', 20, "c")], "c", partition=Partition("orders", "2026-11-21", 9))
    exported = tmp_path / "binary.ndjson"
    quarantine_export_command(stack, exported, RecordSelection(first="2026-11-21", last="2026-11-21"))
    saved = exported.read_text(errors="replace").replace('{"a":5', '{"a":5}')
    # When, Then
    exported.write_text(saved)
    with pytest.raises(InvalidInputError, match=r"line 1 of .*: invalid UTF-8, which .* U\+FFFD as \\ufffd;"):
        quarantine_retry_command(stack, exported)
    assert contents(stack) == []
    # And a person can write the character, or confirm that the line itself contains U+FFFD
    exported.write_text(saved.replace("\ufffd", r"ü\ufffd"))
    assert answered(quarantine_retry_command, stack, exported, code=ExitCode.OK)["resubmissions"][0]["lines"] == 2


def test_a_rejected_line_of_concatenated_values_can_become_many_rows(stack: Any, retry: Retry) -> None:
    # A missing brace would take all values after it to the quarantine.
    stack.convert = {"concatenated": True}
    retry(b'{"a":1} {"a":2}\n\n\n\n', code=ExitCode.OK)
    assert contents(stack) == [b'{"a":1} {"a":2}\n']
    # An open array would take the lines after it.
    with pytest.raises(InvalidInputError, match=r"line 2 of .* not JSON"):
        retry(b'{"a":1} {"a":2}\n[{"a":3}\n\n\n')


def test_the_same_file_again_gives_nothing_back_and_a_further_line_does(stack: Any, retry: Retry) -> None:
    retry(b'{"a":1}\n\n\n\n')
    # When
    body = retry(code=ExitCode.OK)
    # Then
    assert (body["resubmissions"], body["resubmitted"]) == ([], 1)
    # And when another line is repaired as well
    body = retry(b'{"a":1}\n{"a":2}\n\n\n')
    assert [answer["lines"] for answer in body["resubmissions"]] == [1]
    assert contents(stack) == [b'{"a":1}\n', b'{"a":2}\n']


def test_a_dry_run_reports_what_would_be_resubmitted(stack: Any, exported: Path, printed: Printed) -> None:
    exported.write_bytes(b'{"a":1}\n{"a":2}\n\n\n')
    output = printed(quarantine_retry_command, stack, exported, dry_run=True, code=ExitCode.OK).splitlines()
    assert output == [f"{PARTITION}: 2 lines", "dry run, nothing was done; lines to resubmit: 2, 2 left empty"]
    assert stack.keys("control", RESUBMISSIONS) == []


def test_an_interrupted_retry_is_completed(stack: Any, retry: Retry, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: a function that has recorded the lines, and died before they were in a manifest
    monkeypatch.setattr("router.requests.resubmit.take_ownership", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        retry(b'{"a":1}\n\n\n\n')
    monkeypatch.undo()
    # When
    retry()
    # Then
    (row,) = stack.ledger.resubmissions.of(PARTITION)
    assert stack.ledger.arrivals.get(row.file) is not None


def test_an_hour_that_is_converted_again_keeps_no_other_back(
    stack: Any, exported: Path, retry: Retry, printed: Printed
) -> None:
    # Given repaired lines of two hours, and a reprocess of the first
    exported.write_bytes(b'{"a":1}\n{"a":2}\n\n{"a":4}\n')
    (manifest, *_) = {origin.manifest for origin in read_origins(exported) if origin.partition == PARTITION}
    stack.ledger.manifests.force(stack.row(manifest), stack.now, "request")
    for flags in ({"dry_run": True}, {}):
        # When
        body = retry(**flags, code=ExitCode.NEGATIVE)
        # Then
        assert list(body["refused"]) == [str(PARTITION)]
        assert f"manifest {manifest}, which is QUEUED" in body["refused"][str(PARTITION)]
        assert [answer["partition"] for answer in body["resubmissions"]] == [str(LATER)]
    text = printed(quarantine_retry_command, stack, exported)
    assert f"\n{PARTITION}: the rejected lines of manifest {manifest}, which is QUEUED" in text


def test_lines_of_an_hour_that_is_queued_during_the_resubmission_are_reported(
    stack: Any, exported: Path, printed: Printed
) -> None:
    # Given a reprocess between the check of the lines and their recording
    exported.write_bytes(b'{"a":1}\n\n\n\n')
    (manifest, *_) = {origin.manifest for origin in read_origins(exported) if origin.partition == PARTITION}
    stack.faults.reset()
    stack.faults.pause = (3, lambda: stack.ledger.manifests.force(stack.row(manifest), stack.now, "request"))
    # When it runs, and runs again, as after a lost answer
    for _ in range(2):
        text = printed(quarantine_retry_command, stack, exported, code=ExitCode.OK)
        # Then
        assert f"\n{PARTITION} is converted again; repaired lines of this hour" in text


def test_missing_and_changed_files_are_reported(exported: Path, retry: Retry) -> None:
    for number in (1, 5):
        text = rf"has {number} lines?, and .*\.origins names 4: keep one line for"
        with pytest.raises(InvalidInputError, match=text):
            retry(b"{}\n" * number)
    exported.unlink()
    with pytest.raises(InvalidInputError, match=r"repair\.ndjson does not exist: pass the file of an export"):
        retry()
    origins_file(exported).write_text("{}\n")
    with pytest.raises(InvalidInputError, match="is not a valid file of origins"):
        retry()


def test_ls_and_export_know_what_was_resubmitted(
    stack: Any, retry: Retry, tmp_path: Path, answered: Answered, printed: Printed
) -> None:
    retry(b'{"a":1}\n\n\n\n')
    groups = answered(quarantine_ls_command, stack)["groups"]
    assert [(group["lines"], group["resubmitted"]) for group in groups] == [(3, 1), (1, 0)]
    assert "1 resubmitted before" in printed(quarantine_export_command, stack, tmp_path / "rest.ndjson")
    assert (tmp_path / "rest.ndjson").read_bytes() == b'{"a":2\n{"a":3\r\n{"a":4\n'
