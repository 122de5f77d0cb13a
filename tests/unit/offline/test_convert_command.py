"""hybrid-router convert: files of this machine become a lake."""

from __future__ import annotations

import gzip
import io
import shutil
from pathlib import Path

import pytest

from cli.demo.sample_data import sample_files
from cli.errors import ExitCode
from cli.offline.convert import PIPE, convert_files, parse_destination
from lake.errors import InvalidInputError
from offline.output_folder import OutputFolder
from tests.oracle.lake_proof import prove
from tests.unit.offline.conversions import GOOD, answer, inputs, request
from transform.task_model import NUMBERS_PER_TASK

CONTENT = gzip.compress(GOOD * 2000)


@pytest.mark.parametrize(("name", "parquet_files"), [("ndjson.gz", 2), ("ndjson", 1)])
def test_a_stored_byte_of_a_compressed_file_counts_several_times(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    parquet_files: int,
) -> None:
    # Given two files whose stored bytes are too few for two tasks
    monkeypatch.setattr("offline.conversion.MIN_TASK_BYTES", 2 * len(CONTENT))
    folder = tmp_path / "in" / "orders"
    folder.mkdir(parents=True)
    for stem in ("a", "b"):
        (folder / f"{stem}.{name}").write_bytes(CONTENT)
    # When
    convert_files(request(folder, output=tmp_path / "out"))
    # Then each has a task if the names say that they are compressed
    assert answer(capsys)["rows"] == 2 * 4000
    assert len(list((tmp_path / "out" / "lake").rglob("*.parquet"))) == parquet_files


def test_a_folder_is_converted_as_the_jobs_do_and_an_independent_count_agrees(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    # When
    code = convert_files(request(folder, output=output))
    # Then
    told = answer(capsys)
    assert code == ExitCode.NOT_SO
    assert prove(inputs(folder), output).differences == []
    assert (told["files"], told["rows"], told["quarantined"]) == (5, 2 + 1 + 4000, {"not JSON": 1})
    assert list(told["unreadable"].values()) == [1]  # type: ignore[attr-defined]
    assert sorted(path.name for path in (output / "lake").iterdir()) == ["clicks", "orders"]
    # And the text file is counted
    assert told["otherFiles"] == 1
    # And the excluded file is named after the tasks' objects
    numbers = [int(path.stem.rsplit("-", 1)[1]) for path in (output / "quarantine" / "clicks").rglob("*.jsonl")]
    assert [number % NUMBERS_PER_TASK for number in numbers] == [0]
    # And nothing is left over
    assert not (output / "_hybrid-router" / "staging").exists() or not list(
        (output / "_hybrid-router" / "staging").iterdir()
    )


def test_large_files_are_shared_by_the_cores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    files = sample_files(folder, lines=200)
    for file in files:
        target = folder / "orders" / f"{file.path.name}.ndjson"
        target.parent.mkdir(exist_ok=True)
        file.path.rename(target)
    assert convert_files(request(folder, output=tmp_path / "out")) == ExitCode.NOT_SO
    assert answer(capsys)["parquetFiles"] > len(files)  # type: ignore[operator]
    assert prove(inputs(folder), tmp_path / "out").differences == []


def test_a_second_call_converts_only_what_is_new(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    convert_files(request(folder, output=output))
    capsys.readouterr()
    (folder / "orders" / "d.ndjson").write_bytes(GOOD)
    # When
    code = convert_files(request(folder, output=output))
    # Then
    told = answer(capsys)
    assert (told["files"], told["skipped"], told["rows"]) == (1, 5, 2)
    assert prove(inputs(folder), output).differences == []
    # And what the first call has quarantined is not forgotten
    assert code == ExitCode.NOT_SO
    assert told["earlier"] == {"quarantined": {"not JSON": 1}, "unreadable": {"truncated gzip at byte 160": 1}}
    # When only files are named of which every line is a row
    assert convert_files(request(folder / "orders" / "a.ndjson", output=output)) == ExitCode.FINE


def test_two_calls_at_once_for_one_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    with OutputFolder(tmp_path / "out"), pytest.raises(InvalidInputError, match="another process converts into"):
        convert_files(request(folder, output=tmp_path / "out"))


def test_standard_input_is_a_file_of_the_named_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    assert convert_files(request(PIPE, output=tmp_path / "out", dataset="piped")) == ExitCode.FINE
    assert answer(capsys)["rows"] == 2
    assert len(list((tmp_path / "out" / "lake" / "piped").rglob("*.parquet"))) == 1


def test_an_output_inside_of_the_input_is_not_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = folder / "converted"
    for files in (5, 0):
        convert_files(request(folder, output=output))
        assert answer(capsys)["files"] == files


@pytest.mark.parametrize(
    ("dataset", "hour", "message"),
    [
        ("No", None, "--dataset 'No' is not valid"),
        ("1a", None, "begins with a letter"),
        ("a" * 64, None, "at most 63"),
        (None, "yesterday", "the hour 'yesterday' is not valid"),
    ],
)
def test_wrong_options(dataset: str | None, hour: str | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_destination(dataset, hour)


def test_wrong_inputs(tmp_path: Path) -> None:
    output, folder = tmp_path / "out", tmp_path / "Not A Dataset"
    with pytest.raises(InvalidInputError, match="does not exist"):
        convert_files(request(tmp_path / "nowhere", output=output))
    folder.mkdir()
    (folder / "a.ndjson").write_bytes(GOOD)
    with pytest.raises(InvalidInputError, match="pass --dataset"):
        convert_files(request(PIPE, output=output))
    with pytest.raises(InvalidInputError, match="is the output folder: pass another one"):
        convert_files(request(folder, output=folder, dataset="x"))
    shutil.rmtree(output)
    output.write_text("a file")
    with pytest.raises(InvalidInputError, match="cannot be used"):
        convert_files(request(folder, output=output, dataset="x"))


def test_a_tree_is_converted_by_its_folders_and_one_that_would_share_a_dataset_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given folders whose names are not those of datasets, and files at the top
    tree, output = tmp_path / "My Tree", tmp_path / "out"
    for name in ("Orders 2026/a", "web-logs/a", "ok/a", "top", "東京/a"):
        (tree / f"{name}.ndjson").parent.mkdir(parents=True, exist_ok=True)
        (tree / f"{name}.ndjson").write_bytes(GOOD)
    # When
    code = convert_files(request(tree, output=output))
    # Then only the folder without a name is refused
    found = answer(capsys)
    assert (code, found["rows"], len(found["refused"])) == (1, 8, 1)  # type: ignore[arg-type]
    assert "gives no name of a dataset" in str(found["refused"])
    assert sorted(path.name for path in (output / "lake").iterdir()) == ["my_tree", "ok", "orders_2026", "web_logs"]
    # When another folder of one of these names comes later
    (other := tmp_path / "web_logs").mkdir()
    (other / "b.ndjson").write_bytes(GOOD)
    assert convert_files(request(other, output=output)) == 1
    # Then it is not mixed with the first one, unless a person says so
    found = answer(capsys)
    assert found["rows"] == 0
    assert "would share the dataset web_logs, which the folder 'web-logs' has" in str(found["refused"])
    assert convert_files(request(other, output=output, dataset="web_logs")) == 0
