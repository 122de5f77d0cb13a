"""The table of limits in local/README.md and the limits of the patches are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LOCAL = Path(__file__).parents[3] / "local"
LIMIT = re.compile(r"^(?:MAX|MIN)_\w+ = ([\d_ *]+)$", re.MULTILINE)
PATCHES = {path.name: path.read_text() for path in sorted((LOCAL / "emulator_patches").glob("*.py"))}
ROWS = [line.split("|")[1:-1] for line in (LOCAL / "README.md").read_text().splitlines() if line.startswith("| ")]


def limits_of(source: str) -> list[int]:
    """The values of constants like ``MAX_PART_BYTES = 5 * 1024 * 1024``."""
    values = []
    for expression in LIMIT.findall(source):
        value = 1
        for factor in expression.split("*"):
            value *= int(factor)
        values.append(value)
    return values


@pytest.mark.parametrize("name", [name for name, source in PATCHES.items() if limits_of(source)])
def test_every_limit_of_a_patch_is_in_the_rows_that_name_it(name):
    rows = [row[1] for row in ROWS if len(row) == 4 and f"`{name}`" in row[3]]
    numbers = {int(number.replace(",", "")) for row in rows for number in re.findall(r"\d[\d,]*", row)}
    assert set(limits_of(PATCHES[name])) <= numbers


def test_every_row_names_a_patch_the_emulator_or_a_reason():
    for row in ROWS:
        if len(row) == 4 and row[3].strip() != "enforced by":
            named = set(re.findall(r"`(\w+\.py)`", row[3]))
            assert named <= set(PATCHES)
            assert named or "emulator" in row[3] or "not enforced: " in row[3], row
