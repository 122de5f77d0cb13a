"""Every path, module, setting, command and link that the pages name exists."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from cli.main import app
from lake.settings import Settings
from lake.settings.declaration import declared_keys
from tests.unit.docs.pages import CHECKOUT, PAGES, Page, files

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = re.compile(r"(?:[\w.{},*-]+/)*[\w.{},*-]+\.(?:py|pyi|rs|toml|md|json|ya?ml|sh|lock|cfg)|Makefile|LICENSE")
FOLDERED = re.compile(r"[\w.{},*-]+/[\w.{},*/-]*")
GENERATED = {line.strip("/") for line in (CHECKOUT / ".gitignore").read_text(encoding="utf-8").split()}
EXAMPLES = {"settings/prod.toml", "day.toml"}
"""Files that the reader of a page makes."""
TARGET = re.compile(r"(?<![\w-])make ([a-z][a-z0-9-]*)")
COMMAND = re.compile(r"(?<![\w-])hybrid-router ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
MODULE = re.compile(r"python -m ([a-z_][\w.]*)")
TABLES = "input|urgent|peak|stream|batch|convert|schedule|price|sweep|datasets|records"
SETTING = re.compile(rf"(?:{TABLES})\.[a-z_]+(?:\.[a-z_]+)?")


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


def missing_modules(code: list[str]) -> list[str]:
    """Modules that are run with ``-m``, and dotted names of the project's packages."""
    found = [module for text in code for module in MODULE.findall(text)]
    own = [
        text
        for text in code
        if re.fullmatch(r"[a-z_]+(?:\.\w+)+", text) and is_package(text) and not SOURCES.fullmatch(text)
    ]
    keys = setting_keys()
    undefined = [name for name in own if name not in keys and not is_defined(name)]
    return [name for name in found if not is_module(name)] + undefined


def is_package(name: str) -> bool:
    return (CHECKOUT / name.partition(".")[0] / "__init__.py").is_file()


def is_module(name: str) -> bool:
    if not is_package(name):
        return find_spec(name) is not None
    path = CHECKOUT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def is_defined(name: str) -> bool:
    """A package, a module, or a name that is defined in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = CHECKOUT.joinpath(*parts[:length])
        source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
        if source.is_file():
            text = source.read_text(encoding="utf-8")
            return all(re.search(rf"\b{part}\b", text) for part in parts[length:])
    return False


def setting_keys() -> set[str]:
    return {key for key, _ in declared_keys(Settings)}


def unknown_settings(code: list[str]) -> list[str]:
    keys = setting_keys()
    tables = {key.rpartition(".")[0] for key in keys}
    return [match[0] for text in code if (match := SETTING.match(text)) and match[0] not in keys | tables]


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


@pytest.mark.parametrize("find", [missing_paths, missing_modules, unknown_settings, unknown_targets, unknown_commands])
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
