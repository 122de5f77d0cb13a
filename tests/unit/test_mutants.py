"""The mutations of the protocol: one changed node each, names that stay the same, and explanations that are not old."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.mutants.__main__ import PAGE, names_of
from tests.mutants.mutating_code import install
from tests.mutants.operators import mutants, mutated_tree

SOURCE = '''
"""A module."""
LIMIT = 3

def may(row, logger):
    """Whether it may."""
    logger.info("asked")
    conditions = [1, row.state]
    assert dict(zip(row.names, row.values, strict=True))
    if row.state == "DONE" and not row.closed:
        row.count += 1
    return conditions
'''


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants("module.py", source)]


def test_each_rule_of_a_function_is_mutated_and_texts_for_people_are_not() -> None:
    assert changes(SOURCE) == [
        "without 1",
        "without row.state",
        "1 -> 2",
        "row.state == 'DONE' and (not row.closed) -> False",
        "row.state == 'DONE' and (not row.closed) -> not row.closed",
        "row.state == 'DONE' and (not row.closed) -> row.state == 'DONE'",
        "row.state == 'DONE' -> row.state != 'DONE'",
        "not row.closed -> row.closed",
        "row.count += 1 -> nothing",
        "1 -> 2 #2",
    ]


def test_a_mutant_differs_from_the_module_in_one_place() -> None:
    unchanged = ast.unparse(ast.parse(SOURCE)).splitlines()
    for number in range(len(changes(SOURCE))):
        changed = ast.unparse(mutated_tree(SOURCE, number)).splitlines()
        different = [line for line in changed if line not in unchanged]
        assert len(different) <= 1
        assert changed != unchanged


def test_the_name_of_a_mutant_does_not_depend_on_its_line() -> None:
    moved = SOURCE.replace("LIMIT = 3", "LIMIT = 3\n\n\ndef other():\n    return None\n")
    assert changes(moved) == changes(SOURCE)


def test_every_explained_survivor_is_a_mutant_of_the_code_as_it_is_now() -> None:
    explained = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    survivors = {name for name in explained if ": " in name}
    assert survivors
    assert survivors <= names_of(), f"rewrite {PAGE.name}: {sorted(survivors - names_of())}"


IMPORTED = """
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Row:
    tries: int = 0

    @property
    def tried(self):
        return self.tries > 0

def next_of(row):
    return Row(row.tries + 1)
"""


def test_what_has_been_imported_from_a_module_gets_its_mutation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for number, (tries, tried, following) in enumerate([(1, True, 2), (0, True, 1), (0, False, 1), (0, False, -1)]):
        name = f"imported_{number}"
        Path(f"{name}.py").write_text(IMPORTED)
        module = importlib.import_module(name)
        row_class, next_of = module.Row, module.next_of
        install(f"{name}.py", number)
        row = row_class()
        assert (row.tries, row.tried, next_of(row).tries) == (tries, tried, following)
