"""The paths, links and commands in the pages exist. Generated text is current, and imports follow the rules."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer.main

from cli.main import app
from scripts.write_reference import reference
from tests.unit.docs.pages import ARCHITECTURE, CHECKOUT, PAGES, Page, spans

SOURCES = re.compile(r"(?:[\w.*-]+/)*[\w.*-]+\.(?:py|pyi|rs|toml|md|json|ya?ml|sh|lock|cfg)|Makefile|LICENSE")
FOLDERED = re.compile(r"[\w.*-]+/[\w.*/-]*")
GENERATED = {line.strip("/") for line in (CHECKOUT / ".gitignore").read_text(encoding="utf-8").split()}
EXAMPLES = {"settings/prod.toml", "day.toml"}
"""Files that the reader of a page makes."""
COMMAND = re.compile(r"(?<![\w-])hybrid-router ([^<|][^|]*)")
TARGET = re.compile(r"(?<![\w-])make ([a-z][a-z0-9-]*)")


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
    return [path for path in named_paths(code) if not any(CHECKOUT.glob(path.rstrip("/")))]


def unknown_targets(code: list[str]) -> list[str]:
    targets = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    return [target for text in code for target in TARGET.findall(text) if target not in targets]


def refused_commands(code: list[str]) -> list[str]:
    """The command lines that the command rejects; one may lack arguments."""
    lines = [re.sub("<[^>]*>", "1", line) for text in code for line in COMMAND.findall(text)]
    return [line for line in lines if not is_accepted(shlex.split(line))]


def is_accepted(arguments: list[str]) -> bool:
    command: Any = typer.main.get_command(app)
    try:
        while hasattr(command, "commands") and arguments and not arguments[0].startswith("--"):
            command = command.commands[arguments.pop(0)]
        if not hasattr(command, "commands"):
            command.make_context("hybrid-router", arguments)
    except (KeyError, typer.BadParameter) as error:
        return type(error).__name__ == "MissingParameter"
    return True


@pytest.mark.parametrize("find", [missing_paths, unknown_targets, refused_commands])
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


def test_the_reference_is_current() -> None:
    stale = [path.name for path, text in reference().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "write them anew: make reference"


PACKAGES = Page(ARCHITECTURE).rows("package", "content", "may import")


def allowed_imports() -> dict[str, set[str]]:
    """Package -> the packages that it may import, among the project's packages and pyspark."""
    return {
        name.rstrip("/"): set(spans(allowed))
        for names, _, allowed in PACKAGES
        for name in spans(names)
        if (CHECKOUT / name / "__init__.py").is_file()
    }


def test_the_table_of_packages_is_complete() -> None:
    packages = {path.parent.name for path in CHECKOUT.glob("*/__init__.py")} - {"tests"}
    assert set(allowed_imports()) == packages


@pytest.mark.parametrize("package", allowed_imports())
def test_imports_point_one_way(package: str) -> None:
    watched = {*allowed_imports(), "tests", "pyspark"} - {package}
    imported = {
        name.partition(".")[0] for file in (CHECKOUT / package).rglob("*.py") for name in imports_of(file.read_text())
    }
    assert imported & watched <= allowed_imports()[package]


def imports_of(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
