"""docs/adr/: numbered pages with the same sections, and an index that lists every page once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.docs.pages import DECISIONS, Page

if TYPE_CHECKING:
    from pathlib import Path

INDEX = Page(DECISIONS / "README.md")
NUMBERED = sorted(DECISIONS.glob("[0-9]*.md"))
SECTIONS = ["Context", "Decision", "Consequences", "Measured"]
MAX_LINES = 60


def test_the_index_lists_every_page_once() -> None:
    assert sorted(INDEX.links) == sorted(path.name for path in DECISIONS.glob("*.md") if path != INDEX.path)


def test_the_numbers_have_no_gaps() -> None:
    assert [int(path.name[:4]) for path in NUMBERED] == list(range(1, len(NUMBERED) + 1))


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_a_decision_is_one_page_with_its_reasons(path: Path) -> None:
    page = Page(path)
    assert re.match(rf"# {path.name[:4]}: \S", page.text)
    assert re.findall(r"^## (.+)$", page.text, re.MULTILINE) == SECTIONS
    assert len(page.text.splitlines()) <= MAX_LINES
