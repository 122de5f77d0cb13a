"""docs/sizing.md has the figures that the code gives, and its profile is one."""

import re
import tomllib

import pytest

from scripts.markdown_page import replace_between
from sizing.page import BEGIN_MARKER, END_MARKER, PAGE, figures
from sizing.profile import parse_profile

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.long
def test_the_figures_are_those_of_the_code() -> None:
    text = "\n".join(figures(lambda _: None))
    assert replace_between(TEXT, text, BEGIN_MARKER, END_MARKER) == TEXT, "run .venv/bin/python -m sizing.page --write"


def test_the_profile_of_the_page_can_be_simulated() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert parse_profile(tomllib.loads(example)).files == 50_000
