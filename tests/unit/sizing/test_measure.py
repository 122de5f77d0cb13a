"""What a calibration converts: files in turn, tasks for every core, figures of all tasks."""

import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.cost.calibrate import ndjson_files
from cli.main import app
from lake.errors import InvalidInputError
from lake.settings import ConvertSettings
from sizing.measure import convert_task, files_of, kinds_of, plan_tasks, summarise

LINES = b'{"id": 1, "name": "a"}\n' * 1000 + b"broken\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    plain, packed = tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz"
    plain.write_bytes(LINES)
    packed.write_bytes(gzip.compress(LINES))
    return [plain, packed]


def test_files_are_repeated_until_they_are_enough(files: list[Path]) -> None:
    size = sum(path.stat().st_size for path in files)
    assert files_of(files, 1) == files[:1]
    assert files_of(files, size) == files
    assert files_of(files, 3 * size) == files * 3


def test_plain_and_compressed_files_are_converted_apart(files: list[Path]) -> None:
    assert kinds_of(files * 2) == [[files[0]] * 2, [files[1]] * 2]
    assert kinds_of(files[1:]) == [files[1:]]


def test_every_byte_is_in_one_task_and_every_core_has_one(files: list[Path]) -> None:
    tasks = plan_tasks(files * 4, ConvertSettings(split_bytes=5000), 3)
    assert len(tasks) >= 3
    assert sum(split.size for task in tasks for split in task.splits) == 4 * sum(path.stat().st_size for path in files)
    assert all(split.whole for task in tasks for split in task.splits if split.file.key.endswith(".gz"))


def test_the_figures_are_those_of_the_conversion(files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    tasks = plan_tasks(files, ConvertSettings(), 2)
    found = summarise(files, 1.5, [convert_task(str(output), task) for task in tasks])
    assert (found.files, found.rows, found.columns) == (2, 2000, 2)
    assert sum(found.rejects.values()) == 2
    assert found.inflated_bytes == 2 * len(LINES)
    assert found.stored_bytes == sum(path.stat().st_size for path in files)
    assert found.output_bytes == sum(path.stat().st_size for path in output.iterdir() if path.suffix == ".parquet")
    assert found.peak_bytes > 1_000_000


def test_a_file_that_cannot_be_converted_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ndjson.gz"
    broken.write_bytes(gzip.compress(LINES)[:-20])
    output = tmp_path / "output"
    output.mkdir()
    answers = [convert_task(str(output), task) for task in plan_tasks([broken], ConvertSettings(), 1)]
    with pytest.raises(InvalidInputError, match=r"broken\.ndjson\.gz cannot be converted: "):
        summarise([broken], 1.0, answers)


def test_only_ndjson_files_with_bytes_are_taken(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty.ndjson").touch()
    (tmp_path / "notes.txt").write_text("text", encoding="utf-8")
    assert ndjson_files([tmp_path]) == files
    for paths, message in (([tmp_path / "missing"], "does not exist"), ([tmp_path / "notes.txt"], "no file has bytes")):
        with pytest.raises(InvalidInputError, match=message):
            ndjson_files(paths)


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--goal-seconds", "0"], "--goal-seconds 0"), (["--cores", "0"], "--cores 0")],
)
def test_a_goal_that_is_not_valid_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    found = CliRunner().invoke(app, ["calibrate", str(tmp_path), *options])
    assert found.exit_code == 1
    assert message in str(found.exception)
