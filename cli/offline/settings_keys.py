"""What each settings key means: read from the settings classes, so that there is one text for it."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import typer

from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings import Settings, parse_settings
from lake.settings.rule_tables import RULE_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

UNITS = {
    "bytes": "bytes",
    "seconds": "seconds",
    "minutes": "minutes",
    "hours": "hours",
    "days": "days",
    "mib": "MiB",
    "gb": "GB",
    "dollars": "US dollars",
    "share": "share from 0 to 1",
    "dpus": "DPUs",
    "vcpus": "vCPUs",
    "per_second": "bytes per second",
    "per_core": "MB per second and vCPU",
    "hour": "US dollars",
    "flex": "US dollars",
}
"""Unit of a number by the end of its key."""
KINDS = {int: "any whole number", float: "any number", str: "any text", bool: "true or false"}
REFUSED: dict[type, tuple[Any, ...]] = {int: (10**18, -(10**18)), float: (1e18, -1e18), str: ("\0",), bool: ()}
"""Values beyond every range: the error for one says what is allowed."""


@dataclass(frozen=True, slots=True)
class SettingsKey:
    """One key: for people and for ``--json``."""

    key: str
    meaning: str
    unit: str | None
    required: bool
    default: Any
    """As the file would have it; None where the key is required."""
    allowed: str


def settings_keys() -> list[SettingsKey]:
    """Every key, in the order of the settings classes."""
    return list(_keys_of(Settings, ""))


def explain_settings(key: str, *, as_json: bool) -> int:
    """Print what a key, or each key of a table, means; returns the exit code.

    Raises
    ------
    InvalidInputError
        There is no such key or table.
    """
    every = settings_keys()
    found = [item for item in every if item.key == key or item.key.startswith(f"{key}.")]
    if not found:
        close = get_close_matches(key, [item.key for item in every], n=3)
        advice = f"is {' or '.join(close)} meant" if close else "name a key such as stream.trigger_seconds, or a table"
        raise InvalidInputError(f"there is no settings key {key!r}: {advice}")
    if as_json:
        typer.echo(json.dumps({"keys": [asdict(item) for item in found]}, indent=2))
        return ExitCode.FINE
    for number, item in enumerate(found):
        typer.echo(f"{chr(10) if number else ''}{item.key}")
        typer.echo(textwrap.fill(item.meaning, 100, initial_indent="  ", subsequent_indent="  "))
        unit = [("unit", item.unit)] if item.unit else []
        for name, text in [*unit, ("default", _default_text(item)), ("allowed", item.allowed)]:
            typer.echo(f"  {name:<9}{text}")
    return ExitCode.FINE


def _keys_of(settings: type, where: str) -> Iterator[SettingsKey]:
    meanings, hints = _meanings(settings), get_type_hints(settings)
    for item in fields(settings):
        key, kind = where + item.name, hints[item.name]
        if item.name in RULE_TABLES:
            yield from _keys_of(RULE_TABLES[item.name].rule, f"{item.name}.")
        elif is_dataclass(kind) and isinstance(kind, type):
            yield from _keys_of(kind, f"{key}.")
        else:
            required = item.default is MISSING
            default = None if required else item.default
            yield SettingsKey(key, meanings[item.name], _unit(key, kind), required, default, _allowed(key, kind))


def _meanings(settings: type) -> dict[str, str]:
    """Docstring of each field; those that are one sentence of several fields, joined by ``...``, are given whole."""
    body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            assert isinstance(text.value, ast.Constant)
            texts[field.target.id] = " ".join(str(text.value.value).replace("``", "").split())
    return {name: _whole_sentence(list(texts), name, texts) for name in texts}


def _whole_sentence(names: list[str], name: str, texts: dict[str, str]) -> str:
    first = last = names.index(name)
    while texts[names[first]].startswith("..."):
        first -= 1
    while texts[names[last]].endswith("..."):
        last += 1
    if first == last:
        return texts[name]
    parts = names[first : last + 1]
    return " ... ".join(f"{texts[part].strip('. ')} ({part})" for part in parts) + "."


def _unit(key: str, kind: Any) -> str | None:  # noqa: ANN401
    if kind not in (int, float):
        return None
    return next((unit for end, unit in UNITS.items() if key.endswith((f"_{end}", f".{end}"))), None)


def _allowed(key: str, kind: Any) -> str:  # noqa: ANN401
    """The values that the settings accept, by what they say about one that they refuse."""
    item: type = get_args(kind)[0] if get_origin(kind) is tuple else kind
    allowed = KINDS[item]
    for value in REFUSED[item]:
        try:
            parse_settings(_document(key, value if item is kind else [value]))
        except InvalidSettingsError as error:
            if error.key == key:
                allowed = error.expected.removeprefix("expected ")
                break
    return allowed if item is kind else f"a list; of each item: {allowed}"


def _document(key: str, value: Any) -> dict[str, Any]:  # noqa: ANN401
    """A settings document with this value and defaults otherwise."""
    document: Any = value
    for name in reversed(key.split(".")):
        document = [{**RULE_TABLES[name].smallest, **document}] if name in RULE_TABLES else document
        document = {name: document}
    return {"stage": "any", **document}


def _default_text(item: SettingsKey) -> str:
    return "none, the key is required" if item.required else json.dumps(item.default)
