"""Pages with commands: each command line of theirs is one that the command line accepts."""

from __future__ import annotations

import re
import shlex
from typing import Any

import typer.main

from cli.main import app
from tests.unit.docs.pages import CHECKOUT, Page

PAGES = [Page(CHECKOUT / "docs" / name) for name in ("repair.md", "commands.md", "runbook.md", "analysts.md")]
LINES = sorted(
    {
        code.partition("hybrid-router ")[2].strip()
        for page in PAGES
        for code in page.code
        if re.match(r"(\.venv/bin/)?hybrid-router ", code)
    }
)
WHOLE = [line for line in LINES if "<" not in line and ("--" in line or "s3://" in line)]


def parse(line: str) -> None:
    """Parse a command line as the command does; raises an error of typer."""
    command: Any = typer.main.get_command(app)
    arguments = shlex.split(line)
    while hasattr(command, "commands") and arguments[0] not in {name for item in command.params for name in item.opts}:
        command = command.commands[arguments.pop(0)]
    if not hasattr(command, "commands"):
        command.make_context("hybrid-router", arguments)


def test_the_command_lines_of_the_pages_are_accepted() -> None:
    assert len(WHOLE) > 15
    for line in WHOLE:
        parse(line)
