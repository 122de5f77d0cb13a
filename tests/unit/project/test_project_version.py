"""The version is written once, in native/Cargo.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from typer.testing import CliRunner

from cli.main import app

CHECKOUT = Path(__file__).parents[3]
VERSION = tomllib.loads((CHECKOUT / "native" / "Cargo.toml").read_text(encoding="utf-8"))["package"]["version"]


def test_the_command_line_prints_it() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == VERSION
