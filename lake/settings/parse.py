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
"""Name of the stage whose data is protected by default."""


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
    fit together; ``key`` is the full dotted key. Its ``others`` are all further errors.
    """
    table = _Table()
    built: T = table.build(kind, body, "")
    if table.errors:
        first, *others = table.errors
        raise InvalidSettingsError(first.key, first.value, first.expected, others)
    return built


class _Table:
    """Collects the errors of a table: a wrong value is replaced by its default, so that the rest can be checked."""

    def __init__(self) -> None:
        self.errors: list[InvalidSettingsError] = []
        self._wrong: set[str] = set()

    def build(self, kind: type[Any], body: object, path: str) -> Any:  # noqa: ANN401
        """An instance of ``kind``; ``path`` of its keys is empty or ends in a dot."""
        if not isinstance(body, dict):
            self._refuse(path.rstrip(".") or "settings", body, "expected a table of keys")
            body = {}
        known = declared(kind)
        names = [field.name for field in known]
        for name in body:
            if name not in names:
                self._refuse(path + name, body[name], f"no such key; known: {', '.join(names)}")
        values: dict[str, Any] = {}
        for field in known:
            if field.name in body:
                self._add(values, field, body[field.name], path + field.name)
            elif field.required:
                values[field.name] = _nothing(field)
                if (path.rstrip(".") or "settings") not in self._wrong:
                    self._refuse(path + field.name, None, "this key is required")
        built = kind(**values)
        if hasattr(built, "conflicts"):
            for conflict in built.conflicts():
                if not any(self._is_wrong(key) for key in conflict.keys):
                    self._refuse(conflict.keys[0], conflict.value, conflict.expected)
        return built

    def _add(self, values: dict[str, Any], field: Field, value: object, key: str) -> None:
        before = len(self.errors)
        found = self._items(field, value, key) if field.is_list else self._value(field, value, key)
        is_table = is_dataclass(field.kind) and not field.is_list
        if is_table or len(self.errors) == before:
            values[field.name] = found
            return
        self._wrong.add(key)
        if field.required:
            values[field.name] = _nothing(field)

    def _items(self, field: Field, value: object, key: str) -> tuple[Any, ...]:
        if isinstance(value, list | tuple):
            return tuple(self._item(field, item, key) for item in value)
        self._refuse(key, value, "expected a list")
        return ()

    def _item(self, field: Field, item: object, key: str) -> Any:  # noqa: ANN401
        """An item of a list; each table of a list has its own wrong keys."""
        if not is_dataclass(field.kind):
            return self._value(field, item, key)
        table = _Table()
        built = table.build(field.kind, item, f"{key}.")
        self.errors += table.errors
        return built

    def _value(self, field: Field, value: object, key: str) -> Any:  # noqa: ANN401
        kind = field.kind
        if is_dataclass(kind):
            return self.build(kind, value, f"{key}.")
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            with suppress(OverflowError):
                value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self._refuse(key, value, f"expected {KINDS[kind][0]}")
        elif refusal := next(filter(None, (rule.refusal(value) for rule in field.rules)), None):
            self._refuse(key, value, refusal)
        return value

    def _refuse(self, key: str, value: object, expected: str) -> None:
        self.errors.append(InvalidSettingsError(key, value, expected))
        self._wrong.add(key)

    def _is_wrong(self, key: str) -> bool:
        return any(key == wrong or key.startswith(f"{wrong}.") for wrong in self._wrong)


def _nothing(field: Field) -> Any:  # noqa: ANN401
    """A placeholder for a required value that is missing or wrong."""
    return () if field.is_list else field.kind()
