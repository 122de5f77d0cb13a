"""The modules of the Rust reader import each other in one direction only."""

import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE_FOLDER = Path(__file__).parents[3] / "native" / "src"


def imported_modules(source: str) -> set[str]:
    """The module after each ``crate::``, and the module of each item in ``crate::{...}``."""
    modules: set[str] = set()
    for path in re.finditer(r"\bcrate::(\w+|\{)", source):
        if path[1] == "{":
            modules.update(_modules_in_group(source[path.end() :]))
        else:
            modules.add(path[1])
    return modules


def _modules_in_group(group: str) -> Iterator[str]:
    depth, at_path_start = 1, True
    for token in re.finditer(r"\w+|[{},]", group):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return
        if depth == 1 and at_path_start and token[0].isidentifier():
            yield token[0]
        at_path_start = depth == 1 and token[0] == ","


def import_order(sources: dict[str, str]) -> list[str]:
    """Each module after the modules that it imports.

    Raises
    ------
    graphlib.CycleError
        There is no such order.
    """
    graph = {module: imported_modules(source) & sources.keys() for module, source in sources.items()}
    return list(graphlib.TopologicalSorter(graph).static_order())


def test_the_modules_have_no_import_cycle() -> None:
    # Given
    sources = {file.stem: file.read_text(encoding="utf-8") for file in SOURCE_FOLDER.rglob("*.rs")}
    # When
    order = import_order(sources)
    # Then the order is complete and follows two imports that are known to exist
    assert set(order) == set(sources)
    assert order.index("row") < order.index("reader") < order.index("lib")


@pytest.mark.parametrize(
    "source",
    [
        "use crate::second::Thing;",
        "use crate::{second, third};",
        "use crate::{\n    third::{x, y},\n    second::{self, z},\n};",
        "fn call() { crate::second::call() }",
    ],
)
def test_a_cycle_is_found_in_every_form_of_an_import(source: str) -> None:
    with pytest.raises(graphlib.CycleError):
        import_order({"first": source, "second": "use crate::first::Thing;", "third": ""})


def test_only_the_start_of_a_path_is_a_module() -> None:
    source = "use crate::{names, reject::{Reject, Sample}, table as rows};"
    assert imported_modules(source) == {"names", "reject", "table"}
