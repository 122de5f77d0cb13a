"""JSON documents on S3: one encoding, one way to put and to get them.

Type hints convert dataclasses to plain values and back, also for rows of the ledger. The dataclasses of ``--json``
have fields in camelCase and a JSON Schema.
"""

import hashlib
import json
import re
import time
import types
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from botocore.exceptions import IncompleteReadError, ReadTimeoutError, ResponseStreamingError
from botocore.response import StreamingBody

from lake.aws_types import S3Client
from lake.errors import InvalidDocumentError, NewerDocumentError
from lake.faults import suppress_codes
from lake.layout import parse_s3_uri

MAX_BODY_SECONDS = 600.0
"""Time limit for one body of a few MiB. The clients' timeouts do not end a body that sends a byte each second; its
reader would wait until the engine ends the run."""
BODY_TRIES = 3
"""Number of tries for a body that breaks off."""
PIECE_BYTES = 1024
"""A read waits for this number of bytes, however slowly they arrive."""


def receive(body: StreamingBody, uri: str) -> bytes:
    """The whole body. Raises ``ReadTimeoutError`` after ``MAX_BODY_SECONDS``; the caller then closes the body."""
    received, end = bytearray(), time.monotonic() + MAX_BODY_SECONDS
    # A piece is no larger than what came before it, so that a slow body is noticed in its first pieces.
    while piece := body.read(min(len(received) + 1, PIECE_BYTES)):
        received += piece
        if time.monotonic() > end:
            raise ReadTimeoutError(endpoint_url=uri)
    return bytes(received)


def get_body(s3: S3Client, bucket: str, key: str) -> bytes:
    """The body of an object, with the time limit of ``receive``. Raises botocore's errors.

    It repeats requests because the clients repeat none whose answer has begun: one lost connection would end a job run.
    """

    def get() -> bytes:
        with closing(s3.get_object(Bucket=bucket, Key=key)["Body"]) as body:
            return receive(body, f"s3://{bucket}/{key}")

    for _ in range(BODY_TRIES - 1):
        with suppress(IncompleteReadError, ResponseStreamingError):
            return get()
    return get()


def encode_document(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def put_document(s3: S3Client, bucket: str, key: str, body: bytes) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")


def put_first_document(s3: S3Client, bucket: str, key: str, body: bytes) -> bool:
    """Put a document unless the key has one; returns whether this call put it.

    False also after a lost answer: botocore repeats the request and finds the document of the first one.
    """
    with suppress_codes("PreconditionFailed"):
        s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json", IfNoneMatch="*")
        return True
    return False


def get_document(s3: S3Client, bucket: str, key: str) -> bytes:
    """The body of a document that the ledger names. Raises ``InvalidDocumentError`` when it is gone."""
    try:
        return get_body(s3, bucket, key)
    except s3.exceptions.NoSuchKey as error:
        raise gone(f"s3://{bucket}/{key}") from error


def get_bound_document(s3: S3Client, bucket: str, key: str, sha256: str) -> bytes:
    """The body of a document whose SHA-256 (hexadecimal) the ledger has recorded.

    Raises ``InvalidDocumentError`` when it is gone or was changed since, and the errors of ``refuse_cut``.
    """
    body = get_document(s3, bucket, key)
    if hashlib.sha256(body).hexdigest() != sha256:
        refuse_cut(s3, bucket, key, len(body))
        raise InvalidDocumentError(
            f"s3://{bucket}/{key} was changed after the ledger recorded it, so it is not used: restore "
            "the object (protection.versions keeps earlier versions)"
        )
    return body


def refuse_cut(s3: S3Client, bucket: str, key: str, received: int) -> None:
    """Raise ``IncompleteReadError`` if the object has another size than the bytes received: the fault of a proxy."""
    size = s3.head_object(Bucket=bucket, Key=key)["ContentLength"]
    if received != size:
        raise IncompleteReadError(actual_bytes=received, expected_bytes=size)


def find_document(s3: S3Client, bucket: str, key: str, *members: str) -> dict[str, Any] | None:
    """The parsed document under ``key``, or None if the key has no object.

    Raises ``InvalidDocumentError`` if it is damaged or lacks one of ``members``; the errors of ``refuse_cut``.
    """
    try:
        body = get_body(s3, bucket, key)
    except s3.exceptions.NoSuchKey:
        return None
    try:
        return parse_document(body, f"s3://{bucket}/{key}", *members)
    except InvalidDocumentError:
        refuse_cut(s3, bucket, key, len(body))
        raise


def parse_document(body: bytes, uri: str, *members: str) -> dict[str, Any]:
    """The JSON object that is at ``uri``.

    Raises ``InvalidDocumentError`` when it is something else, or lacks one of ``members``.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not document.keys() >= {*members}:
        raise damaged(uri)
    return document


def gone(uri: str) -> InvalidDocumentError:
    return InvalidDocumentError(f"{uri} is gone: restore the object (protection.versions keeps earlier versions)")


def damaged(uri: str) -> InvalidDocumentError:
    return InvalidDocumentError(f"{uri} is damaged: restore the object (protection.versions keeps earlier versions)")


def read_uri(s3: S3Client, uri: str) -> bytes:
    """The body of the object at ``s3://bucket/key``; raises ``InvalidInputError`` when the URI is not valid."""
    place = parse_s3_uri(uri)
    return get_body(s3, place.bucket, place.key)


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def format_json(document: object) -> str:
    return json.dumps(to_json(document), indent=2)


def to_json(value: object) -> Any:  # noqa: ANN401
    """The value in the form that ``json.dumps`` accepts: dataclasses as objects, enumerations as their values."""
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
    """The JSON Schema (draft 2020-12) of a type, by its hints; the texts of ``Annotated`` describe the members."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **_schema(kind)}


def _member(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401, PLR0911
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
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


T = TypeVar("T")

FORMAT = 1
"""Version of every document's format."""
_LISTED: set[type] = set()


def listed(kind: type[T]) -> type[T]:
    """Decorate a dataclass that is frequent in documents: it is encoded as a list of its values, without names."""
    _LISTED.add(kind)
    return kind


def encode(value: Any) -> Any:  # noqa: ANN401
    """The plain value: a dataclass as an object without its None fields, a type with ``parse`` as its text."""
    encoder: Callable[[Any], Any] | None = _encoder(type(value))  # type: ignore[arg-type]
    return value if encoder is None else encoder(value)


def decode(kind: type[T], value: object) -> T:
    """Inverse of ``encode``. It ignores members that ``kind`` does not have.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` if the value is not an encoded ``kind``, which has every field
    that cannot be None.
    """
    decoder: Any = _decoder(kind)  # type: ignore[arg-type]
    found: T = decoder(value)
    return found


def decode_found(kind: type[T], value: object, uri: str) -> T:
    """``decode`` for a document at ``uri``. Raises ``InvalidDocumentError`` if it is damaged."""
    try:
        return decode(kind, value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(uri) from error


def decode_partial(default: T, item: Mapping[str, Any] | None) -> T:
    """``default`` with the fields that ``item`` has: a row whose attributes are written one by one."""
    return decode(type(default), {**encode(default), **(item or {})})


def encode_body(value: object) -> bytes:
    return encode_document({"format": FORMAT, **encode(value)})


def decode_body(kind: type[T], body: bytes, name: str) -> T:
    """Inverse of ``encode_body``; ``name`` describes the document. The caller has verified the bytes or written them.

    Raises ``NewerDocumentError`` if this version cannot read it, because another version wrote it.
    """
    try:
        data = json.loads(body)
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, not {FORMAT}")
        return decode(kind, data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NewerDocumentError(
            f"this version cannot read the {name} ({error}): deploy the newer version of hybrid-router that wrote it"
        ) from error


@cache
def _encoder(kind: type) -> Callable[[Any], Any] | None:
    """The function that encodes values of a type; None if they are plain."""
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
    """The function that decodes values of a type; None if the plain value is used as it is."""
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
