"""``--help`` of every command shows the texts that its source has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from rich.text import Text

from cli.main import app


def helps(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of a command, its options, and the commands in it."""
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    for child, item in getattr(command, "commands", {}).items():
        yield from helps(f"{name} {child}", item)


def test_no_word_is_taken_for_markup() -> None:
    texts = dict(helps("hybrid-router", typer.main.get_command(app)))
    assert len(texts) > 100
    assert {name: text for name, text in texts.items() if Text.from_markup(text).plain != text} == {}
