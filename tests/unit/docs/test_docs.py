"""What the pages name exists: paths, links, commands."""

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
import typer.main

from cli.main import app
from tests.unit.docs.pages import CHECKOUT, PAGES, Page, files

SOURCES = re.compile(r"(?:[\w.{},*-]+/)*[\w.{},*-]+\.(?:py|pyi|rs|toml|md|json|ya?ml|sh|lock|cfg)|Makefile|LICENSE")
FOLDERED = re.compile(r"[\w.{},*-]+/[\w.{},*/-]*")
GENERATED = {line.strip("/") for line in (CHECKOUT / ".gitignore").read_text(encoding="utf-8").split()}
EXAMPLES = {"settings/prod.toml", "day.toml"}
"""Files that the reader of a page makes."""
TARGET = re.compile(r"(?<![\w-])make ([a-z][a-z0-9-]*)")
COMMAND = re.compile(r"(?<![\w-])hybrid-router ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")


def named_paths(code: list[str]) -> list[str]:
    """Words of code that can only be files or folders of the checkout."""
    words = [word.strip(",;:").removeprefix("./") for text in code for word in text.split()]
    return [
        word
        for word in words
        if (SOURCES.fullmatch(word) or (FOLDERED.fullmatch(word) and (CHECKOUT / word.partition("/")[0]).is_dir()))
        and word.partition("/")[0] not in GENERATED
        and word not in EXAMPLES
    ]


def missing_paths(code: list[str]) -> list[str]:
    return [path for path in named_paths(code) if not files(path)]


def unknown_targets(code: list[str]) -> list[str]:
    targets = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    return [target for text in code for target in TARGET.findall(text) if target not in targets]


def unknown_commands(code: list[str]) -> list[str]:
    commands: Any = typer.main.get_command(app)
    unknown = []
    for first, second in (match for text in code for match in COMMAND.findall(text)):
        command = commands.commands.get(first)
        below = getattr(command, "commands", None)
        if command is None or (below is not None and second not in below):
            unknown.append(f"{first} {second}".strip())
    return unknown


@pytest.mark.parametrize("find", [missing_paths, unknown_targets, unknown_commands])
def test_what_the_pages_name_exists(find: Callable[[list[str]], list[str]]) -> None:
    assert {page.name: found for page in PAGES if (found := find(page.code))} == {}


def test_every_relative_link_leads_to_a_file_and_its_heading() -> None:
    broken = []
    for page in PAGES:
        for link in page.links:
            target, _, anchor = link.partition("#")
            path = (page.path.parent / target).resolve() if target else page.path
            if not path.exists() or (anchor and anchor not in Page(path).anchors):
                broken.append(f"{page.name}: {link}")
    assert broken == []


PAGES_WITH_COMMANDS = [
    Page(CHECKOUT / "docs" / name) for name in ("repair.md", "commands.md", "runbook.md", "analysts.md")
]
LINES = sorted(
    {
        code.partition("hybrid-router ")[2].strip()
        for page in PAGES_WITH_COMMANDS
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
