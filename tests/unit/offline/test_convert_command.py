"""hybrid-router convert: local files become a lake, each version once, and unreadable files are named."""

import errno
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from obstore.exceptions import GenericError
from typer.testing import CliRunner

from cli.demo.sample_data import sample_files
from cli.errors import ExitCode
from cli.main import app
from cli.offline.convert import PIPE, Request, convert_files, parse_hour
from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion, Partition
from offline.conversion import Conversion
from offline.input_files import InputFile
from offline.output_folder import OutputFolder
from tests.oracle.lake_proof import prove
from tests.unit.offline.conftest import BAD, GOOD, SMALL, Convert, convert_until_killed, inputs, request
from transform import source
from transform.task_model import NUMBERS_PER_TASK


def test_a_folder_is_converted_as_the_jobs_do_and_an_independent_count_agrees(
    folder: Path, tmp_path: Path, convert: Convert
) -> None:
    # When
    output = tmp_path / "out"
    code, summary = convert(folder)
    # Then
    assert code == ExitCode.NEGATIVE
    assert prove(inputs(folder), output) == []
    assert (summary["files"], summary["rows"], summary["quarantined"]) == (5, 2 + 1 + 4000, {"not JSON": 1})
    assert list(summary["unreadable"].values()) == [1]
    assert sorted(path.name for path in (output / "lake").iterdir()) == ["clicks", "orders"]
    # And the text file and the hidden one are counted
    assert summary["otherFiles"] == 2
    # And the excluded file is named after the tasks' objects
    numbers = [int(path.stem.rsplit("-", 1)[1]) for path in (output / "quarantine" / "clicks").rglob("*.jsonl")]
    assert [number % NUMBERS_PER_TASK for number in numbers] == [0]
    # And no other file is left
    assert list(output.glob("_hybrid-router/staging/*")) == []


def test_large_files_are_shared_by_the_cores(tmp_path: Path, convert: Convert) -> None:
    folder = tmp_path / "in"
    files = sample_files(folder, lines=200)
    for file in files:
        target = folder / "orders" / f"{file.path.name}.ndjson"
        target.parent.mkdir(exist_ok=True)
        file.path.rename(target)
    code, summary = convert(folder)
    assert code == ExitCode.NEGATIVE
    assert summary["parquetFiles"] > len(files)
    assert prove(inputs(folder), tmp_path / "out") == []


def test_a_file_larger_than_a_group_is_converted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert
) -> None:
    monkeypatch.setattr("offline.input_files.MAX_GROUP_BYTES", 1)
    assert convert(folder)[1]["files"] == 5
    assert prove(inputs(folder), tmp_path / "out") == []


def test_a_second_call_converts_only_what_is_new(
    folder: Path, tmp_path: Path, convert: Convert, capsys: pytest.CaptureFixture[str]
) -> None:
    convert(folder)
    (folder / "orders" / "d.ndjson").write_bytes(GOOD)
    # When
    code, summary = convert(folder)
    # Then
    assert (summary["files"], summary["skipped"], summary["rows"]) == (1, 5, 2)
    assert prove(inputs(folder), tmp_path / "out") == []
    # And the summary still has the lines that the first call quarantined
    assert code == ExitCode.NEGATIVE
    assert summary["earlier"] == {"quarantined": {"not JSON": 1}, "unreadable": {"truncated gzip at byte 160": 1}}
    # And the printed page has them as well
    convert_files(request(folder, output=tmp_path / "out")).print(as_json=False)
    page = capsys.readouterr().out
    assert "1 whole file: truncated gzip at byte 160\n" in page
    # And a suffix is not advised for a hidden file, which no setting takes
    assert 'unless its name begins with "." or "_", add its suffix' in page
    # When only files without rejected lines are passed
    assert convert(folder / "orders" / "a.ndjson")[0] == ExitCode.OK


def test_two_calls_at_once_for_one_folder_are_refused(folder: Path, tmp_path: Path, convert: Convert) -> None:
    with OutputFolder(tmp_path / "out"), pytest.raises(InvalidInputError, match="another process converts into"):
        convert(folder)


def test_standard_input_is_a_file_of_the_named_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    code, summary = convert(PIPE, dataset="piped")
    assert (code, summary["rows"]) == (ExitCode.OK, 2)
    assert len(list((tmp_path / "out" / "lake" / "piped").rglob("*.parquet"))) == 1
    # And a closed pipe is named
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidInputError, match="standard input is closed"):
        convert(PIPE, dataset="piped")


def test_the_folder_of_an_early_hour_is_read_by_the_next_call(folder: Path, tmp_path: Path, convert: Convert) -> None:
    call = request(folder / "orders" / "a.ndjson", output=tmp_path / "out")
    call = replace(call, search=replace(call.search, hour=parse_hour("0999-01-01T08")))
    for number in ((1, 0), (0, 1)):
        _, summary = convert(call)
        assert (summary["files"], summary["skipped"]) == number
    assert list((tmp_path / "out" / "lake").glob("orders/date=0999-01-01/hour=08/*.parquet"))


def test_a_clock_that_was_set_back_converts_no_line_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert
) -> None:
    # Given a file that was empty at first
    file = tmp_path / "orders" / "a.ndjson"
    file.parent.mkdir()
    file.touch()
    convert(file)
    # When it gets lines on a day that is earlier by the clock
    file.write_bytes(GOOD)
    with monkeypatch.context() as clock:
        clock.setattr("offline.conversion.new_manifest_id", lambda _: "20201120T093000" + "0" * 20)
        assert convert(file)[1]["rows"] == 2
    # Then the next call knows the file
    assert convert(file)[1]["skipped"] == 1


def test_an_output_inside_of_the_input_is_not_input(folder: Path, tmp_path: Path, convert: Convert) -> None:
    converted = folder / "converted"
    for files in (5, 0):
        assert convert(folder, output=converted)[1]["files"] == files
    # Nor is the folder of an earlier call, whose quarantine looks like input; a person keeps a report next to it
    (converted / "report.json").write_bytes(GOOD)
    assert convert(folder, output=converted)[1]["files"] == 0
    # And its folders count as left out, like two input files, because they can belong to a person
    found = convert(folder, output=tmp_path / "other")[1]
    assert (found["files"], found["otherFiles"]) == (6, 2 + len(["lake", "quarantine"]))


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--dataset", "No", "--dataset 'No' is not valid"),
        ("--dataset", "a" * 64, "at most 63"),
        ("--hour", "yesterday", "the hour 'yesterday' is not valid"),
        ("--hour", "0001-01-01T00+05:00", "the hour '0001-01-01T00+05:00' is not valid"),
        ("--hour", "9999-12-31T23", "the hour '9999-12-31T23' is not valid"),
    ],
)
def test_wrong_options(folder: Path, tmp_path: Path, option: str, value: str, message: str) -> None:
    found = CliRunner().invoke(app, ["convert", str(folder), "-o", str(tmp_path / "out"), option, value])
    assert isinstance(found.exception, InvalidInputError)
    assert message in str(found.exception)
    assert not (tmp_path / "out").exists()


def test_the_codec_can_be_chosen_without_a_settings_file(folder: Path, tmp_path: Path) -> None:
    file, output = folder / "orders" / "a.ndjson", tmp_path / "out"
    found = CliRunner().invoke(app, ["convert", str(file), "-o", str(output), "--compression", "snappy"])
    (path,) = output.rglob("*.parquet")
    codec = pq.read_metadata(path).row_group(0).column(0).compression
    assert (found.exit_code, codec) == (ExitCode.OK, "SNAPPY")


def test_wrong_inputs(tmp_path: Path, convert: Convert) -> None:
    folder, file = tmp_path / "in", tmp_path / "file"
    folder.mkdir()
    file.touch()
    for call, output, message in (
        (folder, Path("s3://bucket/lake"), "is not a folder of this machine"),
        (folder, Path("file:///lake"), "is not a folder of this machine"),
        (tmp_path / "nowhere", tmp_path / "out", "does not exist"),
        (PIPE, tmp_path / "out", "pass --dataset"),
        (folder, folder, "is the output folder: pass another one"),
        (folder, file, "cannot be used"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            convert(call, output=output)


def test_a_tree_is_converted_by_its_folders_and_one_that_would_share_a_dataset_is_refused(
    tmp_path: Path, convert: Convert
) -> None:
    # Given folders that are not valid dataset names, and files at the top
    tree, output = tmp_path / "My Tree", tmp_path / "out"
    for name in ("Orders 2026/a", "web-logs/a", "ok/a", "top", "東京/a"):
        (tree / f"{name}.ndjson").parent.mkdir(parents=True, exist_ok=True)
        (tree / f"{name}.ndjson").write_bytes(GOOD)
    # When
    code, found = convert(tree)
    # Then only the folder without a dataset name is rejected
    assert (code, found["rows"], len(found["refused"])) == (1, 8, 1)
    assert "cannot become a dataset name" in str(found["refused"])
    assert sorted(path.name for path in (output / "lake").iterdir()) == ["my_tree", "ok", "orders_2026", "web_logs"]
    # When another folder with one of these dataset names is added later
    (other := tmp_path / "web_logs").mkdir()
    (other / "b.ndjson").write_bytes(GOOD)
    code, found = convert(other)
    # Then it is not merged with the first one, unless a person confirms it
    assert (code, found["rows"]) == (1, 0)
    assert "would share the dataset web_logs, which the folder 'web-logs' uses" in str(found["refused"])
    assert convert(other, dataset="web_logs")[0] == 0


@pytest.mark.parametrize("step", range(12))
def test_a_call_that_is_killed_at_any_rename_is_completed_by_the_next(folder: Path, tmp_path: Path, step: int) -> None:
    output = tmp_path / "out"
    assert convert_until_killed(request(folder, output=output), step) or step > 8
    # When, Then
    convert_files(request(folder, output=output))
    assert prove(inputs(folder), output) == []


def test_a_file_that_is_found_in_several_ways_is_converted_once(folder: Path, convert: Convert) -> None:
    # Given a link to a file and one to a folder, a file inside a named folder, and a folder in another
    (folder / "orders" / "link.ndjson").symlink_to(folder / "orders" / "a.ndjson")
    (folder / "clicks" / "latest.ndjson").symlink_to("../orders")
    names = (folder, folder / "orders", folder / "orders" / "a.ndjson", folder / "orders" / ".." / "orders")
    # When
    _, summary = convert(*names)
    # Then
    assert (summary["files"], summary["skipped"], summary["rows"], summary["refused"]) == (5, 0, 2 + 1 + 4000, {})


def test_names_reach_the_disk_before_what_depends_on_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a machine that loses its power: a name is durable once its folder has been synchronized
    output = tmp_path / "out"
    steps: list[tuple[Any, ...]] = []
    replace, synchronize = Path.replace, os.fsync

    def recorded_replace(path: Path, target: Path) -> Path:
        steps.append(target.relative_to(output).parts)
        return replace(path, target)

    def recorded_fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        steps.append(("fsync", path.relative_to(output).parts))
        synchronize(handle)

    with monkeypatch.context() as recorded:
        recorded.setattr(Path, "replace", recorded_replace)
        recorded.setattr(os, "fsync", recorded_fsync)
        # When one manifest is published
        convert_files(request(folder / "orders" / "a.ndjson", output=output))
    # Then its staged object, its commit and its object in the lake become durable in this order
    own = "_hybrid-router"
    (staged,) = (step for step in steps if step[0] == own and step[-1].endswith(".parquet"))
    (commit,) = (step for step in steps if step[:2] == (own, "results"))
    (final,) = (step for step in steps if step[0] == "lake")
    for before, after in ((staged, commit), (commit, final), (final, None)):
        between = steps[steps.index(before) : steps.index(after) if after else None]
        for depth in range(len(before)):
            if depth or before is final:
                assert ("fsync", before[:depth]) in between, (before, depth)
    # And so are its bytes
    assert ("fsync", staged) in steps[steps.index(staged) : steps.index(commit)]


@pytest.fixture
def converted(folder: Path, tmp_path: Path) -> Request:
    """The folder was converted; then a line was added to one of its files."""
    call = request(folder, output=tmp_path / "out")
    convert_files(call)
    with (folder / "orders" / "a.ndjson").open("ab") as file:
        file.write(b'{"a": 9}\n')
    return call


def test_a_file_that_has_grown_is_named_and_its_rows_are_not_added_again(
    converted: Request, folder: Path, convert: Convert
) -> None:
    # When
    code, summary = convert(converted)
    # Then
    assert (code, summary["files"], summary["skipped"]) == (ExitCode.NEGATIVE, 0, 4)
    reason = "it has changed since its 2 rows were converted: pass --replace to replace them"
    assert summary["refused"] == {str(folder / "orders" / "a.ndjson"): reason}
    # When
    _, summary = convert(replace(converted, replace=True))
    # Then the file that shared its Parquet files is converted again together with it
    assert (summary["files"], summary["skipped"], summary["rows"], summary["refused"]) == (2, 3, 3 + 1, {})
    assert prove(inputs(folder), converted.output) == []
    # And then nothing is left to do
    assert convert(replace(converted, replace=True))[1]["files"] == 0


@pytest.mark.parametrize("step", range(8))
def test_a_replacement_that_is_killed_is_completed_by_the_next_call(
    converted: Request, folder: Path, step: int
) -> None:
    assert convert_until_killed(replace(converted, replace=True), step) or step > 6
    # When, Then
    convert_files(replace(converted, replace=True))
    assert prove(inputs(folder), converted.output) == []


def test_rows_of_files_that_are_gone_are_not_replaced(converted: Request, folder: Path, convert: Convert) -> None:
    # Given that the other file of the same Parquet files was deleted
    (folder / "orders" / "b.ndjson").unlink()
    # When
    code, summary = convert(replace(converted, replace=True))
    # Then
    assert (code, summary["files"]) == (ExitCode.NEGATIVE, 0)
    (reason,) = summary["refused"].values()
    assert "its Parquet files have rows of 1 file that is not among those of this call" in reason


@pytest.mark.parametrize("body", [b'{"a": 1}{"a": 2}', b'\x1e{"a": 1}\n\x1e{"a": 2}\n', b'{\n"a": 1\n}\n{\n"a": 2\n}'])
def test_a_file_is_converted_by_the_next_call_that_has_the_option_of_its_reason(
    tmp_path: Path, convert: Convert, body: bytes
) -> None:
    # Given a file with a reason that names an option
    file = tmp_path / "orders" / "a.ndjson"
    file.parent.mkdir()
    file.write_bytes(body)
    (reason,) = convert(file)[1]["unreadable"]
    assert "concatenated = true" in reason
    # When
    settings = replace(SMALL, convert=replace(SMALL.convert, concatenated=True))
    code, summary = convert(file, settings=settings)
    # Then
    assert (code, summary["rows"], summary["earlier"]) == (ExitCode.OK, 2, {"quarantined": {}, "unreadable": {}})
    # And its rows are not added again
    assert [convert(file, settings=item)[1]["skipped"] for item in (settings, SMALL)] == [1, 1]


def test_a_file_without_rows_that_has_grown_is_converted(folder: Path, convert: Convert) -> None:
    # Given a file that was empty, and a file that could not be read
    convert(folder / "clicks")
    (folder / "clicks" / "empty.ndjson").write_bytes(GOOD)
    (folder / "clicks" / "cut.ndjson.gz").write_bytes(BAD)
    # When
    _, summary = convert(folder / "clicks")
    # Then
    assert (summary["files"], summary["rows"], summary["refused"]) == (2, 2 + 1, {})
    assert summary["earlier"] == {"quarantined": {}, "unreadable": {}}


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EACCES, "reading it is denied (Permission denied): allow it, then run the command again"),
        (errno.EIO, "it could not be read: Input/output error; the next call retries it"),
    ],
)
def test_a_file_that_cannot_be_opened_is_converted_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: Convert, others: int, code: int, reason: str
) -> None:
    # Given a file without read permission, which does not stop a test that runs as root, or on a damaged disk
    folder = tmp_path / "orders"
    folder.mkdir()
    closed = folder / "closed.ndjson"
    for path in (closed, *(folder / f"{number}.ndjson" for number in range(others))):
        path.write_bytes(GOOD)
    opened = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path) == str(closed):
            raise OSError(code, os.strerror(code), path)
        return opened(path, *arguments, **options)

    with monkeypatch.context() as denied:
        denied.setattr(os, "open", refuse)
        # When
        exit_code, summary = convert(folder)
    # Then the rest is converted, and the file is named with the necessary action
    assert exit_code == ExitCode.NEGATIVE
    assert (summary["files"], summary["rows"], summary["unreadable"]) == (others, 2 * others, {})
    assert summary["refused"] == {str(closed): reason}
    assert list((tmp_path / "out" / "quarantine").rglob("*.jsonl")) == []
    # And nothing is recorded about it
    exit_code, summary = convert(folder)
    assert (exit_code, summary["files"], summary["skipped"], summary["rows"]) == (ExitCode.OK, 1, others, 2)


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        ("AccessDenied", "Access Denied", "Access Denied"),
        ("NoSuchKey", "", "it was deleted after it arrived"),
        ("KMS.DisabledException", "the key is disabled.", "the key is disabled."),
    ],
)
def test_an_object_that_can_be_read_later_is_not_quarantined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str, advice: str
) -> None:
    # Given an object whose policy, key or storage class refuses the read
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    client = Mock(**{"get_object.side_effect": ClientError(response, "GetObject")})
    monkeypatch.setattr(source, "s3_client", lambda _: client)
    monkeypatch.setattr(source, "object_store", lambda *_: object())
    monkeypatch.setattr(source.obstore, "get", Mock(side_effect=GenericError("403")))  # type: ignore[attr-defined]
    file = ObjectVersion("input", "orders/a.ndjson", "e", 8, "2026-03-04T11:59:00+00:00", None)
    item = InputFile(file, Partition("orders", "2026-03-04", 11))
    # When
    with OutputFolder(tmp_path) as output:
        conversion = Conversion(output, SMALL.convert, 1, lambda _: None, "eu-central-1")
        outcomes = list(conversion.run([[item]]))
        # Then
        assert output.converted(file) is None
    [outcome] = outcomes
    assert (outcome.sources, outcome.objects, list(outcome.refused)) == ((), (), [file])
    assert advice in (outcome.refused[file].advice or outcome.refused[file].reason)
