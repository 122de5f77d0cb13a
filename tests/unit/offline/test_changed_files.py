"""`hybrid-router convert` of files that have changed since they were converted: no row is added twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.offline.convert import Request, convert_files
from tests.oracle.lake_proof import prove
from tests.unit.offline.conversions import BAD, GOOD, KilledError, answer, inputs, killed_after, request


@pytest.fixture
def converted(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Request:
    """The folder was converted; then one of its files has got a line more."""
    asked = request(folder, output=tmp_path / "out")
    convert_files(asked)
    capsys.readouterr()
    with (folder / "orders" / "a.ndjson").open("ab") as file:
        file.write(b'{"a": 9}\n')
    return asked


def test_a_file_that_has_grown_is_named_and_its_rows_are_not_added_again(
    converted: Request, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # When
    code = convert_files(converted)
    # Then
    told = answer(capsys)
    assert (code, told["files"], told["skipped"]) == (ExitCode.NOT_SO, 0, 4)
    ((path, reason),) = told["refused"].items()  # type: ignore[attr-defined]
    assert path == str(folder / "orders" / "a.ndjson")
    assert reason == "it has changed since its 2 rows were converted: pass --replace to convert it in place of them"


def test_a_file_that_has_grown_is_converted_in_place_of_its_old_rows(
    converted: Request, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # When
    convert_files(replace(converted, replace=True))
    # Then the file that shared its Parquet files is converted again with it
    told = answer(capsys)
    assert (told["files"], told["skipped"], told["rows"], told["refused"]) == (2, 3, 3 + 1, {})
    assert prove(inputs(folder), converted.output) == []
    # And nothing is to do then
    convert_files(replace(converted, replace=True))
    assert answer(capsys)["files"] == 0


@pytest.mark.parametrize("step", range(8))
def test_a_replacement_that_is_killed_is_completed_by_the_next_call(
    converted: Request, folder: Path, step: int
) -> None:
    with killed_after(step):
        try:
            convert_files(replace(converted, replace=True))
        except KilledError:
            pass
        else:
            assert step > 6
    # When
    convert_files(replace(converted, replace=True))
    # Then
    assert prove(inputs(folder), converted.output) == []


def test_rows_of_files_that_are_gone_are_not_replaced(
    converted: Request, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given the other file of the same Parquet files was deleted
    (folder / "orders" / "b.ndjson").unlink()
    # When
    code = convert_files(replace(converted, replace=True))
    # Then
    told = answer(capsys)
    assert (code, told["files"]) == (ExitCode.NOT_SO, 0)
    (reason,) = told["refused"].values()  # type: ignore[attr-defined]
    assert "its Parquet files have rows of 1 file that is not among those of this call" in reason


def test_a_file_without_rows_that_has_grown_is_converted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given one that was empty, and one that could not be read
    asked = request(folder / "clicks", output=tmp_path / "out")
    convert_files(asked)
    capsys.readouterr()
    (folder / "clicks" / "empty.ndjson").write_bytes(GOOD)
    (folder / "clicks" / "cut.ndjson.gz").write_bytes(BAD)
    # When
    convert_files(asked)
    # Then
    told = answer(capsys)
    assert (told["files"], told["rows"], told["refused"]) == (2, 2 + 1, {})
    assert told["earlier"] == {"quarantined": {}, "unreadable": {}}
