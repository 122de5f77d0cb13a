"""docs/sizing.md has the figures that the code gives, and its profile is one."""

import re
import tomllib

import pytest

from sizing.page import BEGIN_MARKER, END_MARKER, PAGE, figures, replaced
from sizing.profile import parse_profile

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.long
def test_the_figures_are_those_of_the_code() -> None:
    assert replaced(TEXT, figures(lambda _: None)) == TEXT, "run .venv/bin/python -m sizing.page --write"


def test_the_profile_of_the_page_can_be_simulated() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert parse_profile(tomllib.loads(example)).files == 50_000


def test_only_what_is_between_the_markers_is_replaced() -> None:
    page = f"before\n{BEGIN_MARKER}\nold\n{END_MARKER}\nafter\n"
    assert replaced(page, ["new"]) == f"before\n{BEGIN_MARKER}\nnew\n{END_MARKER}\nafter\n"
