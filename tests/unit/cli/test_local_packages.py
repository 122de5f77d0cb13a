"""What a command on this machine lacks is one sentence before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.cost.calibrate import calibrate_files
from cli.errors import NotReachableError
from cli.main import app
from lake.errors import InvalidInputError


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("command", [["demo"], ["local", "up"]])
def test_without_java_a_command_ends_before_it_begins(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, command)
    assert isinstance(found.exception, NotReachableError)
    assert "need Java 17 or newer: install OpenJDK 17" in str(found.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_sample_of_one_tiny_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_bytes(b'{"a": 1}\n')
    with pytest.raises(InvalidInputError, match="the files have 9 bytes together, too few to measure"):
        calibrate_files([file], goal_seconds=60, cores=1, output=None)
