"""TOML or JSON to ``Settings``: strict types, no unknown keys."""

from __future__ import annotations

import json
import tomllib
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from lake.errors import InvalidSettingsError
from lake.settings.model import Settings

if TYPE_CHECKING:
    from types import GenericAlias


PRODUCTION = "prod"
"""Name of the stage whose data is protected by default."""


def load_settings(path: Path) -> Settings:
    """Settings of a ``.toml`` or ``.json`` file (UTF-8).

    Raises
    ------
    InvalidSettingsError
        A value is not valid; or the file is missing or cannot be parsed, then ``key`` is ``file``.
    """
    return parse_settings(read_body(path))


def read_body(path: Path) -> dict[str, Any]:
    """The parsed document of a ``.toml`` or ``.json`` file (UTF-8), whatever its keys are.

    Raises
    ------
    InvalidSettingsError
        The file is missing or cannot be parsed; ``key`` is ``file``.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        body: dict[str, Any] = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        raise InvalidSettingsError("file", str(path), "the file does not exist: copy settings/dev.toml") from error
    except (OSError, ValueError) as error:
        raise InvalidSettingsError("file", str(path), f"not readable: {error}") from error
    return body


def parse_settings(body: dict[str, Any]) -> Settings:
    """Settings of a parsed TOML or JSON document.

    No value is converted, except a whole number to a float: ``"5"`` is not 5, and ``true`` is not 1. In the stage
    ``prod`` stored data is protected unless the document says otherwise.

    Raises
    ------
    InvalidSettingsError
        Unknown or missing key, or a value of a wrong type or range; ``key`` is the full dotted key.
    """
    if isinstance(body, dict) and body.get("stage") == PRODUCTION and isinstance(body.get("protection", {}), dict):
        body = {**body, "protection": {"versions": True, "deletion": True, **body.get("protection", {})}}
    settings: Settings = build(Settings, body, "")
    return settings


def dump_settings(settings: Settings) -> str:
    """JSON text; ``load_settings`` reads it back to equal settings."""
    return json.dumps(asdict(settings), indent=1, sort_keys=True)


def build(cls: type[Any], body: object, path: str) -> Any:  # noqa: ANN401
    """An instance of the dataclass ``cls`` from a parsed table; ``path`` of its keys is empty or ends in a dot.

    Raises
    ------
    InvalidSettingsError
        As ``parse_settings``; also where ``cls`` does not belong to the settings, such as the profile of a simulation.
    """
    if not isinstance(body, dict):
        raise InvalidSettingsError(path.rstrip(".") or "settings", body, "expected a table of keys")
    hints = get_type_hints(cls)
    unknown = sorted(set(body) - set(hints))
    if unknown:
        raise InvalidSettingsError(path + unknown[0], body[unknown[0]], f"no such key; known: {', '.join(hints)}")
    for item in fields(cls):
        required = item.default is MISSING and item.default_factory is MISSING
        if required and item.name not in body:
            raise InvalidSettingsError(path + item.name, None, "this key is required")
    return cls(**{key: _value(hints[key], value, path + key) for key, value in body.items()})


def _value(kind: type[Any] | GenericAlias, value: object, path: str) -> Any:  # noqa: ANN401
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise InvalidSettingsError(path, value, "expected a list")
        return tuple(_value(get_args(kind)[0], item, path) for item in value)
    if is_dataclass(kind):
        return build(kind, value, path + ".")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):  # type: ignore[arg-type]
        raise InvalidSettingsError(path, value, f"expected {_kind_name(kind)}")
    return value


def _kind_name(kind: object) -> str:
    return {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}[kind]  # type: ignore[index]
