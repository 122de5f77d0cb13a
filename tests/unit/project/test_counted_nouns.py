"""A person never reads "1 manifests": a number in a text gets its noun by ``lake.counted``."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from lake.counted import format_count
from tests.unit.docs.pages import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = (
    "batch_job",
    "calibrate",
    "cli",
    "lake",
    "offline",
    "report",
    "router",
    "streaming_job",
    "transform",
    "verify",
)
NOUNS = (
    "attempts|columns|datasets|differences|executions|files|lines|manifests|objects|pointers|rows|runs|tasks|uploads"
)
ADJECTIVES = "blank|event|invalid|job|manifest|more|new|other|Parquet|published|quarantined|rejected|unreadable"
PLURAL = re.compile(rf" (?:(?:{ADJECTIVES}) )*(?:{NOUNS})\b")
NUMBERS = ("len", "max", "min", "round", "sum")
"""Functions that return a number."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_count(0, "file"), "0 files"),
        (format_count(1, "file"), "1 file"),
        (format_count(2000, "file"), "2,000 files"),
        (format_count(1, "file is", "files are"), "1 file is"),
        (format_count(2, "file is", "files are"), "2 files are"),
        (format_count(1.5, "minute"), "1.5 minutes"),
    ],
)
def test_a_number_gets_its_noun(text: str, expected: str) -> None:
    assert text == expected


def test_every_text_counts_by_it() -> None:
    wrong = [text for package in PACKAGES for text in _counting_texts(package)]
    assert wrong == []


def _counting_texts(package: str) -> Iterator[str]:
    for path in sorted((CHECKOUT / package).rglob("*.py")):
        texts = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.JoinedStr))
        for value, following in (pair for text in texts for pair in pairwise(text.values)):
            if isinstance(value, ast.FormattedValue) and isinstance(following, ast.Constant):
                noun = str(following.value)
                if PLURAL.match(noun) and _varies(value.value):
                    yield f"{path.relative_to(CHECKOUT)}:{value.lineno}: {ast.unparse(value.value)}{noun}"


def _varies(value: ast.expr) -> bool:
    """Whether it can be 1: it is no constant, and no text."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in NUMBERS
    name = value.value if isinstance(value, ast.Subscript) else value
    return not (isinstance(name, ast.Name) and name.id.isupper())
