"""Dataclasses as plain values and back, by their type hints: rows of the ledger, and documents on S3."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from lake.documents import encode_document
from lake.errors import NewerDocumentError

T = TypeVar("T")

FORMAT = 1
"""Version of every document's format."""
_LISTED: set[type] = set()


def listed(kind: type[T]) -> type[T]:
    """Decorate a dataclass that documents have many of: it becomes a list of its values, without their names."""
    _LISTED.add(kind)
    return kind


def encode(value: Any) -> Any:  # noqa: ANN401
    """The plain value: a dataclass as an object without the fields that are None, what has ``parse`` as its text."""
    encoder: Callable[[Any], Any] | None = _encoder(type(value))  # type: ignore[arg-type]
    return value if encoder is None else encoder(value)


def decode(kind: type[T], value: object) -> T:
    """Inverse of ``encode``. Members that ``kind`` does not have are passed over.

    Raises
    ------
    KeyError, TypeError, ValueError
        The value is not one of ``kind``: ``encode`` writes every field that cannot be None.
    """
    decoder: Any = _decoder(kind)  # type: ignore[arg-type]
    found: T = decoder(value)
    return found


def decode_partial(default: T, item: Mapping[str, Any] | None) -> T:
    """``default`` with what an item has, whose attributes are written one by one."""
    return decode(type(default), {**encode(default), **(item or {})})


def encode_body(value: object) -> bytes:
    """The bytes of a document on S3."""
    return encode_document({"format": FORMAT, **encode(value)})


def decode_body(kind: type[T], body: bytes, name: str) -> T:
    """Inverse of ``encode_body``; ``name`` says what the document is. The ledger or its writer vouches for the bytes.

    Raises
    ------
    NewerDocumentError
        This version cannot read it, so another one has written it.
    """
    try:
        data = json.loads(body)
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, not {FORMAT}")
        return decode(kind, data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NewerDocumentError(
            f"this version cannot read the {name} ({error}): a newer version of hybrid-router can, deploy it again"
        ) from error


@cache
def _encoder(kind: type) -> Callable[[Any], Any] | None:
    """None: the value is plain."""
    if hasattr(kind, "parse"):
        return str
    if is_dataclass(kind):
        names = [item.name for item in fields(kind)]
        if kind in _LISTED:
            return lambda value: [encode(getattr(value, name)) for name in names]
        return lambda value: {name: encode(item) for name in names if (item := getattr(value, name)) is not None}
    if issubclass(kind, list | tuple):
        return lambda value: [encode(item) for item in value]
    if issubclass(kind, dict):
        return lambda value: {key: encode(item) for key, item in value.items()}
    return None


@cache
def _decoder(hint: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401
    """None: the plain value is the value."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        inner = _decoder(arguments[0])
        return None if inner is None else lambda value: None if value is None else inner(value)
    if origin in (tuple, dict):
        each = _decoder(arguments[origin is dict]) or _same
        if origin is tuple:
            return lambda value: tuple(map(each, value))
        return lambda value: {key: each(item) for key, item in value.items()}
    if hasattr(hint, "parse") or (isinstance(hint, type) and issubclass(hint, Enum)):
        text: Callable[[Any], Any] = getattr(hint, "parse", hint)
        return text
    return _object_decoder(hint) if is_dataclass(hint) or hasattr(hint, "_fields") else None


def _object_decoder(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    if kind in _LISTED or not is_dataclass(kind):
        decoders = [_decoder(hints[name]) or _same for name in hints]
        return lambda value: kind(*(one(item) for one, item in zip(decoders, value, strict=True)))
    required = [item.name for item in fields(kind) if NoneType not in get_args(hints[item.name])]
    every = {item.name: _decoder(hints[item.name]) or _same for item in fields(kind)}
    optional = {item.name: None for item in fields(kind) if item.default is MISSING and item.name not in required}

    def build(value: Mapping[str, Any]) -> Any:  # noqa: ANN401
        for name in required:
            if name not in value:
                raise KeyError(name)
        return kind(**{**optional, **{name: one(value[name]) for name, one in every.items() if name in value}})

    return build


def _same(value: Any) -> Any:  # noqa: ANN401
    return value
