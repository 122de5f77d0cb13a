"""calibrate: the files that it converts, its figures, and its advice."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from cli.cost.sizing import ndjson_files
from cli.errors import ExitCode
from lake.errors import InvalidInputError
from lake.settings import ConvertSettings
from sizing.calibration import (
    Measurement,
    advise,
    files_of,
    measure,
    measure_task,
    summarise,
    tasks_of,
)
from tests.unit.docs.pages import CHECKOUT

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


def test_the_figures_match_the_conversion(files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    tasks = tasks_of(files, ConvertSettings(), 2)
    found = summarise(files, 1.5, [measure_task(output, task) for task in tasks])
    assert (found.files, found.rows, found.columns) == (2, 2000, 2)
    assert sum(found.rejects.values()) == 2
    assert found.inflated_bytes == 2 * len(LINES)
    assert found.stored_bytes == sum(path.stat().st_size for path in files)
    assert found.output_bytes == sum(path.stat().st_size for path in output.rglob("*.parquet"))
    assert found.peak_bytes > 1_000_000


def test_a_file_that_cannot_be_converted_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ndjson.gz"
    broken.write_bytes(gzip.compress(LINES)[:-20])
    output = tmp_path / "output"
    output.mkdir()
    answers = [measure_task(output, task) for task in tasks_of([broken], ConvertSettings(), 1)]
    with pytest.raises(InvalidInputError, match=r"broken\.ndjson\.gz cannot be converted: "):
        summarise([broken], 1.0, answers)


def end_process(*_: object) -> None:
    """Pass the function by its name to the processes, which end as the kernel ends one for its memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_ends_the_calibration(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sizing.calibration.measure_task", end_process)
    with pytest.raises(InvalidInputError, match="a process was killed"):
        measure(files, 1.0, ConvertSettings(), 2, print)


def test_only_ndjson_files_with_bytes_are_taken(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty.ndjson").touch()
    (tmp_path / "notes.txt").write_text("text", encoding="utf-8")
    assert ndjson_files([tmp_path]) == files
    for paths, message in (([tmp_path / "missing"], "does not exist"), ([tmp_path / "notes.txt"], "no non-empty file")):
        with pytest.raises(InvalidInputError, match=message):
            ndjson_files(paths)


MB = 1_000_000


def measurement(speed: float = 20.0, rejects: dict[str, int] | None = None, *, compressed: bool = False) -> Measurement:
    """A measurement of 1,000 MB as stored, 4,000 MB inflated."""
    return Measurement(
        compressed, 3, 1000 * MB, 4000 * MB, 30.0, 1000 / speed, 800 * MB, 200 * MB, 5_000_000, 16, rejects or {}
    )


def test_the_last_of_each_kind_is_assumed_and_the_network_is_the_limit() -> None:
    measured = [measurement(speed=17.3), measurement(speed=180.0), measurement(speed=13.0, compressed=True)]
    found = {item.key: item.value for item in advise(measured)}
    assert found == {"mb_per_second_per_core": 40.0, "compressed_mb_per_second_per_core": 13.0}


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )


def test_a_person_gets_figures_and_a_settings_file(tmp_path: Path) -> None:
    # Given files of a person, one line of which is not NDJSON
    (tmp_path / "a.ndjson").write_bytes(b'{"id": 1, "name": "a"}\n' * 100_000 + b"broken\n")
    lines = (f'{{"id": {number}, "name": "{Random(number).getrandbits(512):x}"}}\n' for number in range(20_000))
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress("".join(lines).encode()))
    written = tmp_path / "calibrated.toml"
    # When they calibrate
    options = ("--goal-seconds", "0.1", "--cores", "2", "--output", str(written))
    found = command("calibrate", str(tmp_path), *options)
    # Then the figures are there, and the settings are valid
    assert found.returncode == 0, found.stderr
    for part in ("MB/s per core", "2 columns", "rejected: ", "compressed files"):
        assert part in found.stdout
    for text in (found.stdout, written.read_text()):
        assert "compressed_mb_per_second_per_core" in text
        assert text.count("# the processor converts") == 2
    assert command("settings", "check", str(written)).returncode == 0
    # And an unwritable file is named after the figures
    found = command("calibrate", str(tmp_path), *options[:-1], str(tmp_path / "none" / "calibrated.toml"))
    assert found.returncode == ExitCode.NOT_REACHABLE
    assert "MB/s per core" in found.stdout
    assert "none/calibrated.toml: No such file or directory: remove the cause" in found.stderr
