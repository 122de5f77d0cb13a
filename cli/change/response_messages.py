"""The messages of a function's response, which ``promote`` and ``reprocess`` print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from lake.texts import printable


def print_messages(response: Mapping[str, Any]) -> None:
    """Print ``messages``, one in a line, and how many were ``omitted``."""
    for message in response["messages"]:
        typer.echo(printable(message))
    if response["omitted"]:
        typer.echo(f"... and {response['omitted']:,} more")
