"""``settings explain``: what each settings key means, from the declaration of its field."""

from __future__ import annotations

import json
import textwrap
from difflib import get_close_matches

import typer

from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError
from lake.settings import Settings
from lake.settings.declaration import Field, declared_keys


def explain_settings(key: str, *, as_json: bool) -> int:
    """Print what a key, or each key of a table, means; returns the exit code."""
    every = dict(declared_keys(Settings))
    found = {name: field for name, field in every.items() if name == key or name.startswith(f"{key}.")}
    if not found:
        close = get_close_matches(key, every, n=3)
        advice = f"is {' or '.join(close)} meant" if close else "name a key such as stream.trigger_seconds, or a table"
        raise InvalidInputError(f"there is no settings key {key!r}: {advice}")
    if as_json:
        typer.echo(json.dumps({"keys": [_document(name, field) for name, field in found.items()]}, indent=2))
        return ExitCode.FINE
    for number, (name, field) in enumerate(found.items()):
        typer.echo(f"{chr(10) if number else ''}{name}")
        typer.echo(textwrap.fill(field.meaning, 100, initial_indent="  ", subsequent_indent="  "))
        default = "none, the key is required" if field.required else json.dumps(field.default)
        unit = [("unit", field.unit)] if field.unit else []
        for label, text in [*unit, ("default", default), ("allowed", field.allowed)]:
            typer.echo(f"  {label:<9}{text}")
    return ExitCode.FINE


def _document(key: str, field: Field) -> dict[str, object]:
    return {
        "key": key,
        "meaning": field.meaning,
        "unit": field.unit,
        "required": field.required,
        "default": field.default,
        "allowed": field.allowed,
    }
