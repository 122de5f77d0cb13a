"""docs/architecture.md is the one declaration of which package may import which: the code follows its table."""

import ast
from collections.abc import Iterator

import pytest

from tests.unit.docs.pages import ARCHITECTURE, CHECKOUT, Page, spans

PACKAGES = Page(ARCHITECTURE).rows("package", "content", "may import")


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
