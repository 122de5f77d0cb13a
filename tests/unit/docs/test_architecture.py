"""docs/architecture.md: each term once, each answer in its files, and imports as the table says."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from lake import layout
from lake.ledger import State
from tests.unit.docs.pages import ARCHITECTURE, CHECKOUT, Page, files, spans
from tests.unit.docs.test_docs import named_paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = Page(ARCHITECTURE)
TERM = re.compile(r"\*\*(.+)\*\*")
CHANGES = PAGE.rows("question or change", "files", "search for")
PACKAGES = PAGE.rows("package", "content", "may import")
OUTCOMES = {"HELD", "UNKNOWN", "IGNORED"}


def terms() -> list[str]:
    found = [TERM.fullmatch(term) for term, _ in PAGE.rows("term", "meaning")]
    return [term[1] for term in found if term]


def test_the_glossary_defines_each_term_once_and_in_order() -> None:
    defined = [term.casefold() for term in terms()]
    # A state comes next to the word it is made of: "publish", then "PUBLISHING".
    assert defined == sorted(defined)
    assert len(set(terms())) == len(PAGE.rows("term", "meaning"))
    assert all(meaning for _, meaning in PAGE.rows("term", "meaning"))


def test_the_glossary_defines_every_state_and_outcome() -> None:
    assert {*State, *OUTCOMES} <= set(terms())


@pytest.mark.parametrize(("question", "where", "names"), CHANGES, ids=[question for question, _, _ in CHANGES])
def test_what_to_search_for_is_in_the_files(question: str, where: str, names: str) -> None:
    sources = [source for path in named_paths(spans(where)) for found in files(path) for source in texts(found)]
    assert sources
    assert spans(names)
    for name in spans(names):
        assert any(re.search(rf"\b{name}\b", source) for source in sources), name


def texts(path: Path) -> Iterator[str]:
    for file in sorted(path.rglob("*.*")) if path.is_dir() else [path]:
        if file.suffix in {".py", ".rs", ".json", ".toml", ".md"}:
            yield file.read_text(encoding="utf-8")


def test_the_tables_list_every_function_and_state_machine() -> None:
    functions = {path.parent.name for path in (CHECKOUT / "router").glob("*/handler.py")}
    assert first_cells("function", "started by", "purpose") == functions
    machines = {path.name.partition(".")[0] for path in (CHECKOUT / "statemachines").glob("*.asl.json")}
    assert first_cells("state machine", "started by", "purpose") == machines


def test_the_table_lists_every_prefix_of_the_control_bucket() -> None:
    prefixes = {value for value in vars(layout).values() if isinstance(value, str) and value.endswith("/")}
    assert first_cells("prefix in the control bucket", "document", "written by") == prefixes


def first_cells(*header: str) -> set[str]:
    return {name for cell, *_ in PAGE.rows(*header) for name in spans(cell)}


def allowed_imports() -> dict[str, set[str]]:
    """Package -> what it may import, of the project's packages and pyspark."""
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


def test_no_table_tells_the_same_twice() -> None:
    # A row that two branches have changed is there twice after their merge
    for table in re.split(r"\n(?!\|)", ARCHITECTURE.read_text(encoding="utf-8")):
        subjects = [row.split("|")[1].strip() for row in table.splitlines() if row.startswith("|")]
        assert len(subjects) == len(set(subjects)), [name for name in subjects if subjects.count(name) > 1]
