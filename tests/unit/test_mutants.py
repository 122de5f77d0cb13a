"""The mutations of the protocol: one changed node each, names that stay the same, and explanations that are not old."""

import ast
import re

from tests.mutants.__main__ import PAGE, names_of
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
