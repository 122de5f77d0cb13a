"""What the pages name exists: paths, modules, settings, links, commands of ours and of AWS."""

from __future__ import annotations

import re
import shlex
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
import typer.main
from botocore import xform_name

from cli.main import app
from lake.settings import Settings
from lake.settings.declaration import declared_keys
from tests.unit.docs.advice import ALONE, PACKAGES, QUOTED, texts
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


AWS_COMMAND = re.compile(r"^aws ([a-z][a-z0-9-]*) ([a-z][a-z-]*)(.*)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
SAME_FOR_ALL = {"cli-binary-format", "max-items", "output", "profile", "query", "region"}
OWN_COMMANDS = {
    ("logs", "tail"): {"log-stream-names", "since", "filter-pattern", "follow", "format"},
    ("s3", "sync"): {"delete", "dryrun", "exclude", "include"},
}
"""Commands that are no operation of the service, with their options
(https://docs.aws.amazon.com/cli/latest/reference/logs/tail.html, .../s3/sync.html)."""
RENAMED = {("sns", "subscribe"): {"notification-endpoint"}}
"""Options with another name than their parameter (https://docs.aws.amazon.com/cli/latest/reference/sns/subscribe.html).
"""


@cache
def options(service: str, command: str) -> set[str]:
    """Options of the command; empty: there is no such command."""
    if (service, command) in OWN_COMMANDS:
        return OWN_COMMANDS[service, command]
    session = botocore.session.get_session()
    if service not in session.get_available_services():
        return set()
    model = session.get_service_model(service)
    for name in model.operation_names:
        if xform_name(name, "-") == command:
            shape = model.operation_model(name).input_shape
            parameters = {xform_name(member, "-") for member in (shape.members if shape else ())}
            return SAME_FOR_ALL | RENAMED.get((service, command), set()) | parameters
    return set()


def unknown(code: str) -> list[str]:
    """The command, or those of its options that it does not have."""
    found = AWS_COMMAND.match(code)
    if found is None:
        return []
    service, command, rest = found.groups()
    known = options(service, command)
    return [option for option in OPTION.findall(rest) if option not in known] if known else [f"{service} {command}"]


def test_every_command_of_the_pages_exists() -> None:
    wrong = {page.name: [found for code in page.code for found in unknown(code.strip())] for page in PAGES}
    assert {name: found for name, found in wrong.items() if found} == {}


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


COMMANDS: Any = typer.main.get_command(app)
MENTION = re.compile(rf"hybrid-router (?:{'|'.join(COMMANDS.commands)})\b")


def test_a_command_inside_a_sentence_is_quoted() -> None:
    found = [
        text
        for package in PACKAGES
        for path in sorted((CHECKOUT / package).rglob("*.py"))
        for text in texts(path.read_text(encoding="utf-8"))
        if len(MENTION.findall(text)) > len(QUOTED.findall(text)) + len(ALONE.findall(text))
    ]
    assert found == []
