"""``settings check``: every wrong value of a file, or what the file means in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.exit_codes import ExitCode
from cli.offline.settings_summary import doubts, summary
from lake.printable import printable
from lake.settings import dump_settings, parse_settings
from lake.settings.find_errors import find_errors
from lake.settings.parse import read_body

if TYPE_CHECKING:
    from pathlib import Path


def check_settings(path: Path, *, as_json: bool) -> int:
    """Print what a settings file means, or one line on stderr for each error; returns the exit code.

    Raises
    ------
    InvalidSettingsError
        The file is missing or cannot be parsed.
    """
    body = read_body(path)
    if errors := find_errors(body):
        for error in errors:
            typer.echo(f"hybrid-router: {printable(str(error))}", err=True)
        return ExitCode.WRONG_USE
    settings = parse_settings(body)
    if as_json:
        typer.echo(dump_settings(settings))
        return ExitCode.FINE
    typer.echo(f"ok: {printable(str(path))} is valid")
    for topic, text in summary(settings):
        typer.echo(f"{topic:<13}{printable(text)}")
    for text in doubts(settings):
        typer.echo(f"{'look at':<13}{printable(text)}")
    return ExitCode.FINE
