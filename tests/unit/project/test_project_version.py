"""The version is written once, in native/Cargo.toml."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app

CHECKOUT = Path(__file__).parents[3]
VERSION = tomllib.loads((CHECKOUT / "native" / "Cargo.toml").read_text(encoding="utf-8"))["package"]["version"]


@pytest.mark.parametrize("distribution", ["hybrid-router", "ndjson-arrow"])
def test_both_distributions_take_it_from_there(distribution: str) -> None:
    assert version(distribution) == VERSION


@pytest.mark.parametrize("project", ["pyproject.toml", "native/pyproject.toml"])
def test_no_other_file_names_it(project: str) -> None:
    metadata = tomllib.loads((CHECKOUT / project).read_text(encoding="utf-8"))["project"]
    assert "version" not in metadata
    assert metadata["dynamic"] == ["version"]


def test_the_command_line_prints_it() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == VERSION
