"""The documents of ``--json``: frozen dataclasses, whose fields in camelCase are the members of the JSON object."""

from __future__ import annotations

import json
import re
import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def format_json(document: object) -> str:
    """The text that a command prints with ``--json``."""
    return json.dumps(to_json(document), indent=2)


def to_json(value: object) -> Any:  # noqa: ANN401
    """The value as ``json.dumps`` takes it: dataclasses as objects, enumerations as their values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {_member(item.name): to_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def schema_of(kind: Any, title: str) -> dict[str, Any]:  # noqa: ANN401
    """The JSON Schema (draft 2020-12) of a document, made from its type hints.

    The text of an ``Annotated`` hint becomes the description of its member.
    """
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **_schema(kind)}


def _member(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401, PLR0911
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**_schema(arguments[0]), "description": "; ".join(arguments[1:])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(argument) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        members = {_member(item.name): _schema(hints[item.name]) for item in fields(kind)}
        return {"type": "object", "required": list(members), "additionalProperties": False, "properties": members}
    if issubclass(kind, Enum):
        return {"enum": [item.value for item in kind]}
    return {"type": _TYPES[kind]}
