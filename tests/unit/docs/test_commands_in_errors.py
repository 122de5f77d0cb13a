"""Every command that a text of the code advises exists, with the options that it names."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import pytest
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
ADVICE = re.compile(r"(?:^|run |: |or |['`])hybrid-router ([a-z][a-z-]*)(?: ([a-z]+)\b)?([^'`;,]*)")
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


@pytest.mark.parametrize("package", CODE)
def test_every_command_that_the_code_advises_exists(package: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in sorted((CHECKOUT / package).rglob("*.py"))]
    assert sources
    assert [found for source in sources for text in texts(source) for found in unknown_advice(text)] == []


@pytest.mark.parametrize("package", ["cli", "lake", "router"])
def test_the_code_advises_commands(package: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in sorted((CHECKOUT / package).rglob("*.py"))]
    assert any(ADVICE.search(text) for source in sources for text in texts(source))


@pytest.mark.parametrize("package", CODE)
def test_no_text_advises_to_force_a_manifest(package: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in sorted((CHECKOUT / package).rglob("*.py"))]
    assert [
        text for source in sources for text in texts(source) if re.search(r"force (?:the|a|this) manifest", text)
    ] == []


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        ("f\"gone: run 'hybrid-router reprocess --manifest {row.id}'\"", []),
        ("f\"gone: run 'hybrid-router reproces --manifest {row.id}'\"", ["reproces"]),
        ("f\"gone: run 'hybrid-router reprocess --manifests {row.id}'\"", ["reprocess --manifests"]),
        ("f'hybrid-router reprocess {uri} --stages {stage}'", ["reprocess --stages"]),
        ("'look at it: hybrid-router local stop'", ["local stop"]),
        ("'run hybrid-router promote s3://b/k, or hybrid-router promot --dataset d'", ["promot"]),
        ("'a newer version of hybrid-router will publish it'", []),
    ],
)
def test_what_does_not_exist_is_found(code: str, unknown: list[str]) -> None:
    assert [found for text in texts(code) for found in unknown_advice(text)] == unknown
