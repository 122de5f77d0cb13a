"""``settings check``: every wrong value of a file, or what the file means in words."""

from __future__ import annotations

from pathlib import Path

import typer

from cli.exit_codes import ExitCode
from cli.offline.settings_summary import doubts, summary
from cli.tables import print_facts
from lake.settings import dump_settings, load_settings
from lake.texts import printable


def check_settings(path: Path, *, as_json: bool) -> int:
    """Print what a settings file means; returns the exit code."""
    settings = load_settings(path)
    if as_json:
        typer.echo(dump_settings(settings))
        return ExitCode.FINE
    typer.echo(f"ok: {printable(str(path))} is valid")
    print_facts([*summary(settings), *(("look at", text) for text in doubts(settings))])
    return ExitCode.FINE
