"""Every command that a text of the code advises exists, with the options that it names."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import typer.main

from cli.main import app
from tests.unit.docs.pages import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE = (
    "batch_job",
    "calibrate",
    "cli",
    "infra",
    "lake",
    "local",
    "offline",
    "router",
    "simulate",
    "streaming_job",
    "transform",
    "verify",
)
ADVICE = re.compile(r"(?:^|run |: |or |['`])hybrid-router ([a-z][a-z-]*)(?: ([a-z][a-z-]*)\b)?([^'`;,]*)")
"""A command, its subcommand, and the rest up to the end of the quotation or of the clause."""
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
COMMANDS: Any = typer.main.get_command(app)


def texts(source: str) -> Iterator[str]:
    """The strings of a module; the values of an f-string are ``<>``. Its docstrings are texts as well."""
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "<>" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def unknown_advice(text: str) -> list[str]:
    """Commands and options of the text that the command line does not have."""
    unknown = []
    for first, second, rest in ADVICE.findall(text):
        command = COMMANDS.commands.get(first)
        if hasattr(command, "commands"):
            command = command.commands.get(second)
        if command is None:
            unknown.append(f"{first} {second}".strip())
            continue
        options = {name for parameter in command.params for name in parameter.opts}
        unknown += [f"{first} {option}" for option in OPTION.findall(rest) if option not in options]
    return unknown


def test_every_command_that_the_code_advises_exists() -> None:
    paths = [path for package in CODE for path in sorted((CHECKOUT / package).rglob("*.py"))]
    advised = [text for path in paths for text in texts(path.read_text(encoding="utf-8")) if ADVICE.search(text)]
    assert len(advised) > 20
    assert [found for text in advised for found in unknown_advice(text)] == []
