"""Commands that texts of the code advise, for the tests that check and that run them."""

import ast
import re
from collections.abc import Iterator

from tests.unit.docs.pages import CHECKOUT

PACKAGES = (
    "batch_job",
    "cli",
    "infra",
    "lake",
    "local",
    "offline",
    "report",
    "router",
    "streaming_job",
    "transform",
    "verify",
)
QUOTED = re.compile(r"'hybrid-router ([^']*)'")
ALONE = re.compile(r"(?:^|: )hybrid-router ([a-z][^']*)$")
"""A text that is a command, or a line that ends with one: a person copies it."""


def advised_commands() -> dict[str, str]:
    """Command line without the name of the program -> file that has it; ``{}`` holds the expression of a value."""
    paths = (path for package in PACKAGES for path in sorted((CHECKOUT / package).rglob("*.py")))
    return {
        command.strip(): path.relative_to(CHECKOUT).as_posix()
        for path in paths
        for text in texts(path.read_text(encoding="utf-8"))
        for command in (*QUOTED.findall(text), *ALONE.findall(text))
    }


def texts(source: str) -> Iterator[str]:
    """The strings of a module without docstrings; the values of an f-string are in braces."""
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(_part, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | statements:
            yield node.value


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}".replace("'", '"')
    assert isinstance(part, ast.Constant)
    return str(part.value)
