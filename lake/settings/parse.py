"""TOML or JSON to ``Settings``: strict types, no unknown keys, and all errors at once."""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from lake.errors import InvalidSettingsError
from lake.settings.declaration import KINDS, Field, declared
from lake.settings.model import Settings

T = TypeVar("T")
PRODUCTION = "prod"


def load_settings(path: Path) -> Settings:
    """Settings of a ``.toml`` or ``.json`` file (UTF-8).

    Raises ``InvalidSettingsError``: a value is not valid; or the file is missing or cannot be parsed, then ``key`` is
    ``file``.
    """
    try:
        # Some editors write a byte order mark.
        text = Path(path).read_text(encoding="utf-8-sig")
        body: dict[str, Any] = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        advice = "pass --settings with the file of your stage; the checkout has settings/dev.toml to copy"
        raise InvalidSettingsError("file", str(path), f"the file does not exist: {advice}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSettingsError("file", str(path), f"not readable: {error}") from error
    return parse_settings(body)


def parse_settings(body: dict[str, Any]) -> Settings:
    """Settings of a parsed TOML or JSON document.

    No value is converted, except a whole number to a float: ``"5"`` is not 5, and ``true`` is not 1. In the stage
    ``prod`` stored data is protected unless the document says otherwise. Raises ``InvalidSettingsError``: the first
    error of the document, with all ``others``.
    """
    if isinstance(body, dict) and body.get("stage") == PRODUCTION and isinstance(body.get("protection", {}), dict):
        body = {**body, "protection": {"versions": True, "deletion": True, **body.get("protection", {})}}
    return build(Settings, body)


def dump_settings(settings: Settings) -> str:
    """JSON text; ``load_settings`` reads it back to equal settings."""
    return json.dumps(asdict(settings), indent=1, sort_keys=True)


def build(kind: type[T], body: object) -> T:
    """An instance of a class whose fields are declared (``lake.settings.declaration``) from a parsed table.

    Raises ``InvalidSettingsError``: an unknown or missing key, a value of a wrong type or range, or values that do not
    fit together, which are looked for in tables without another error; ``key`` is the full dotted key. Its ``others``
    are all further errors.
    """
    errors: list[InvalidSettingsError] = []
    built: T = _table(kind, body, "", errors)
    if errors:
        first, *others = errors
        raise InvalidSettingsError(first.key, first.value, first.expected, others)
    return built


def _table(kind: type[Any], body: object, path: str, errors: list[InvalidSettingsError]) -> Any:  # noqa: ANN401
    """An instance of ``kind``, or None after an error; ``path`` of its keys is empty or ends in a dot."""
    if not isinstance(body, dict):
        errors.append(InvalidSettingsError(path.rstrip(".") or "settings", body, "expected a table of keys"))
        return None
    before = len(errors)
    known = {field.name: field for field in declared(kind)}
    unknown = f"no such key; known: {', '.join(known)}"
    errors += [InvalidSettingsError(path + name, body[name], unknown) for name in body if name not in known]
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in body:
            values[name] = _value(field, body[name], path + name, errors)
        elif field.required:
            errors.append(InvalidSettingsError(path + name, None, "this key is required"))
    if len(errors) > before:
        return None
    built = kind(**values)
    if hasattr(built, "conflicts"):
        errors += built.conflicts()
    return built


def _value(field: Field, value: object, key: str, errors: list[InvalidSettingsError]) -> Any:  # noqa: ANN401
    if not field.is_list:
        return _item(field, value, key, errors)
    if not isinstance(value, list | tuple):
        errors.append(InvalidSettingsError(key, value, "expected a list"))
        return None
    return tuple(_item(field, item, key, errors) for item in value)


def _item(field: Field, value: object, key: str, errors: list[InvalidSettingsError]) -> Any:  # noqa: ANN401
    kind = field.kind
    if is_dataclass(kind):
        return _table(kind, value, f"{key}.", errors)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        with suppress(OverflowError):
            value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        errors.append(InvalidSettingsError(key, value, f"expected {KINDS[kind][0]}"))
    elif refusal := next(filter(None, (rule.refusal(value) for rule in field.rules)), None):
        errors.append(InvalidSettingsError(key, value, refusal))
    return value
