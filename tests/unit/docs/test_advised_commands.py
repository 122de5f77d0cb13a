"""A text of the code that advises a command quotes it, so that the stage's options can be added; e2e runs each."""

from __future__ import annotations

import re
from typing import Any

import typer.main

from cli.main import app
from tests.unit.docs.advice import ALONE, PACKAGES, QUOTED, texts
from tests.unit.docs.pages import CHECKOUT

COMMANDS: Any = typer.main.get_command(app)
MENTION = re.compile(rf"hybrid-router (?:{'|'.join(COMMANDS.commands)})\b")


def test_a_command_inside_a_sentence_is_quoted() -> None:
    found = [
        text
        for package in PACKAGES
        for path in sorted((CHECKOUT / package).rglob("*.py"))
        for text in texts(path.read_text(encoding="utf-8"))
        if len(MENTION.findall(text)) > len(QUOTED.findall(text)) + len(ALONE.findall(text))
    ]
    assert found == []
