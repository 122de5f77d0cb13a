"""`hybrid-router convert`: every line of every file is in the lake or in the quarantine, once, whatever happens."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.convert import PIPE, Request, convert_files, parse_destination
from cli.demo.proof import prove
from cli.demo.sample_data import sample_files
from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError, TransientError
from lake.settings import ConvertSettings, Settings
from offline.conversion import Conversion
from offline.input_files import Destination, Search
from offline.output_folder import OutputFolder
from transform.task_model import NUMBERS_PER_TASK

GOOD = b'{"a": 1, "b": "x"}\n{"a": 2}\n'
BAD = b'{"a": 3}\nnot JSON\n'
SMALL = Settings(stage="here", convert=ConvertSettings(split_bytes=4096, target_file_bytes=8192, row_group_bytes=65536))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of two datasets, one of which cannot be read to its end."""
    for name, content in {
        "orders/a.ndjson": GOOD,
        "orders/b.ndjson": BAD,
        "clicks/c.ndjson.gz": gzip.compress(GOOD * 2000),
        "clicks/cut.ndjson.gz": gzip.compress(GOOD * 2000)[:-40],
        "clicks/empty.ndjson": b"",
        "clicks/.hidden.ndjson": GOOD,
        "clicks/notes.txt": b"x",
    }.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "in"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in threads of this process: the start of processes would take most of the test."""
    monkeypatch.setattr("offline.conversion.new_pool", ThreadPoolExecutor)


def request(*paths: Path | str, output: Path, settings: Settings = SMALL, dataset: str | None = None) -> Request:
    search = Search([str(path) for path in paths], settings, Destination(dataset), "")
    return Request(search, output, cores=2, as_json=True)


def inputs(folder: Path) -> list[tuple[Path, str, str]]:
    found = sorted(path for path in folder.rglob("*.ndjson*") if not path.name.startswith("."))
    return [(path, path.resolve().as_uri(), path.parent.name) for path in found]


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    body: dict[str, object] = json.loads(capsys.readouterr().out)
    return body


@pytest.mark.usefixtures("threads")
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


@pytest.mark.usefixtures("threads")
def test_a_second_call_converts_only_what_is_new(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    convert_files(request(folder, output=output))
    capsys.readouterr()
    (folder / "orders" / "d.ndjson").write_bytes(GOOD)
    # When
    assert convert_files(request(folder, output=output)) == ExitCode.FINE
    # Then
    told = answer(capsys)
    assert (told["files"], told["skipped"], told["rows"]) == (1, 5, 2)
    assert prove(inputs(folder), output).differences == []


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("step", range(12))
def test_a_call_that_is_killed_at_any_rename_is_completed_by_the_next(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    output, renames = tmp_path / "out", iter(range(step))
    replace = Path.replace

    class KilledError(Exception):
        pass

    def replace_until(path: Path, target: Path) -> Path:
        if next(renames, None) is None:
            raise KilledError
        return replace(path, target)

    with monkeypatch.context() as killed:
        killed.setattr(Path, "replace", replace_until)
        try:
            convert_files(request(folder, output=output))
        except KilledError:
            pass
        else:
            assert step > 8
    # When
    convert_files(request(folder, output=output))
    # Then
    assert prove(inputs(folder), output).differences == []


def test_a_killed_process_of_the_pool_is_told_and_loses_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("offline.conversion.convert_task", die)
        with pytest.raises(TransientError, match="run the same command again"):
            convert_files(request(folder, output=tmp_path / "out"))
    convert_files(request(folder, output=tmp_path / "out"))
    assert prove(inputs(folder), tmp_path / "out").differences == []


def die(*_: object) -> None:
    """In a process of the pool."""
    os._exit(137)


def test_two_calls_at_once_for_one_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    with OutputFolder(tmp_path / "out"), pytest.raises(InvalidInputError, match="another process converts into"):
        convert_files(request(folder, output=tmp_path / "out"))


@pytest.mark.usefixtures("threads")
def test_a_file_that_changes_meanwhile_is_not_read_half(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Conversion._plan

    def plan_then_grow(self: Conversion, group: object) -> object:
        with (folder / "orders" / "a.ndjson").open("ab") as file:
            file.write(b'{"a": 9}')
        return plan(self, group)  # type: ignore[arg-type]

    with monkeypatch.context() as changed:
        changed.setattr(Conversion, "_plan", plan_then_grow)
        convert_files(request(folder / "orders", output=tmp_path / "out", dataset="orders"))
    assert any("changed while it was converted" in reason for reason in answer(capsys)["unreadable"])  # type: ignore[attr-defined]


@pytest.mark.usefixtures("threads")
def test_standard_input_is_a_file_of_the_named_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    assert convert_files(request(PIPE, output=tmp_path / "out", dataset="piped")) == ExitCode.FINE
    assert answer(capsys)["rows"] == 2
    assert len(list((tmp_path / "out" / "lake" / "piped").rglob("*.parquet"))) == 1


@pytest.mark.usefixtures("threads")
def test_an_output_inside_of_the_input_is_not_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = folder / "converted"
    for files in (5, 0):
        convert_files(request(folder, output=output))
        assert answer(capsys)["files"] == files


@pytest.mark.usefixtures("threads")
def test_a_file_that_is_found_in_several_ways_is_converted_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a link to a file, a file inside of a named folder, and a folder in another
    (folder / "orders" / "link.ndjson").symlink_to(folder / "orders" / "a.ndjson")
    names = (folder, folder / "orders", folder / "orders" / "a.ndjson", folder / "orders" / ".." / "orders")
    # When
    convert_files(request(*names, output=tmp_path / "out"))
    # Then
    told = answer(capsys)
    assert (told["files"], told["skipped"], told["rows"]) == (5, 0, 2 + 1 + 4000)


@pytest.mark.usefixtures("threads")
def test_names_reach_the_disk_before_what_depends_on_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a machine that loses its power: a name is safe once its folder has been synchronized
    output, steps = tmp_path / "out", []
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
    # Then its staged object, its commit, its object in the lake and its result are safe one after the other
    own = "_hybrid-router"
    (staged,) = (step for step in steps if step[0] == own and step[-1].endswith(".parquet"))
    (commit,) = (step for step in steps if step[:2] == (own, "commits"))
    (final,) = (step for step in steps if step[0] == "lake")
    (result,) = (step for step in steps if step[:2] == (own, "results"))
    for before, after in ((staged, commit), (commit, final), (final, result)):
        between = steps[steps.index(before) : steps.index(after)]
        for depth in range(len(before)):
            if depth or before is final:
                assert ("fsync", before[:depth]) in between, (before, depth)


@pytest.mark.parametrize(
    ("dataset", "hour", "message"),
    [("No", None, "--dataset 'No' is not valid"), (None, "yesterday", "the hour 'yesterday' is not valid")],
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
        convert_files(request(folder, output=output))
    with pytest.raises(InvalidInputError, match="pass --dataset"):
        convert_files(request(PIPE, output=output))
    shutil.rmtree(output)
    output.write_text("a file")
    with pytest.raises(InvalidInputError, match="cannot be used"):
        convert_files(request(folder, output=output, dataset="x"))
