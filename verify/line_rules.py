"""The rules of a line and of column names, implemented a second time: simple instead of fast, without native/.

It uses only the standard library. The grammar is RFC 8259 as regular expressions. The order of the reasons and the rule
for column names are implemented again from their descriptions in native/python/ndjson_arrow/__init__.py and
docs/columns.md. The tests' oracle of the reader uses it as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DEPTH = 256
RESERVED = {"date", "hour", "_rescued", "_source", "_offset", "_arrived_at"}

SPACE = re.compile(r"[ \t\r\n]*")
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
# Possessive, with look-ahead: `1e` and `1.` are invalid numbers, not a 1 with trailing characters.
FRACTION, EXPONENT = r"(?:\.[0-9]++|(?!\.))", r"(?:[eE][+-]?[0-9]++|(?![eE]))"
SCALAR = re.compile(rf"true|false|null|-?(?:0|[1-9][0-9]*+){FRACTION}{EXPONENT}")

HASHED_NAME = re.compile("[a-z0-9_]{160}__1[0-9a-f]{32}_")


class RejectedError(Exception):
    """The line is rejected; the only argument is the reason."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the row: its unescaped key, key and value verbatim, and the value's text for the column."""

    key: str
    raw_key: str
    raw_value: str
    text: str | None


def parse_line(raw: bytes, *, first: bool, max_line_bytes: int) -> list[Member] | None:
    """The members of the row; None for a blank line."""
    if len(raw) > max_line_bytes:
        raise RejectedError("line too long")
    if first:
        raw = raw.removeprefix(BYTE_ORDER_MARK)
    if not raw.strip(b" \t\r"):
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise RejectedError("invalid UTF-8") from None
    position = skip_space(text, 0)
    spans: list[tuple[str, str]] = []
    is_object = text[position] == "{"
    position = skip_value(text, position, 0, spans)
    if skip_space(text, position) != len(text):
        raise RejectedError("trailing characters")
    if not is_object:
        raise RejectedError("not an object")
    members = [Member(unescape(key), key, value, column_text(value)) for key, value in spans]
    if len({member.key for member in members}) < len(members):
        raise RejectedError("duplicate key")
    return members


def skip_space(text: str, position: int) -> int:
    return SPACE.match(text, position).end()  # type: ignore[union-attr]


def skip_value(text: str, position: int, depth: int, spans: list[tuple[str, str]] | None = None) -> int:
    """The position after a valid value; adds key and value of the members of an object to ``spans``."""
    if position < len(text) and text[position] in "{[":
        if depth == MAX_DEPTH:
            raise RejectedError("too deep")
        return skip_container(text, position, depth + 1, spans)
    return match_end(STRING if text[position : position + 1] == '"' else SCALAR, text, position)


def skip_container(text: str, position: int, depth: int, spans: list[tuple[str, str]] | None) -> int:
    is_object = text[position] == "{"
    closing = "}" if is_object else "]"
    position = skip_space(text, position + 1)
    if text[position : position + 1] == closing:
        return position + 1
    while True:
        key = ""
        if is_object:
            key_end = match_end(STRING, text, position)
            key = text[position:key_end]
            position = skip_space(text, key_end)
            if text[position : position + 1] != ":":
                raise RejectedError("not JSON")
            position = skip_space(text, position + 1)
        value_end = skip_value(text, position, depth)
        if spans is not None:
            spans.append((key, text[position:value_end]))
        position = skip_space(text, value_end)
        if text[position : position + 1] == closing:
            return position + 1
        if text[position : position + 1] != ",":
            raise RejectedError("not JSON")
        position = skip_space(text, position + 1)


def match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    if match is None:
        raise RejectedError("not JSON")
    return match.end()


def unescape(literal: str) -> str:
    text = json.loads(literal)
    assert isinstance(text, str)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise RejectedError("lone surrogate")
    return text


def column_text(value: str) -> str | None:
    if value == "null":
        return None
    return unescape(value) if value.startswith('"') else value


def column_name(key: str) -> str:
    name = "".join(encode_character(key, index) for index in range(len(key))) or "__0_"
    if name in RESERVED:
        name += "__"
    if len(name) > 200 or HASHED_NAME.fullmatch(name):
        return f"{name[:160]}__1{hashlib.sha256(key.encode()).hexdigest()[:32]}_"
    return name


def encode_character(key: str, index: int) -> str:
    character = key[index]
    if re.fullmatch("[a-z0-9]", character):
        return character
    if re.fullmatch("[A-Z]", character):
        return "__" + character.lower()
    if character == "_" and re.fullmatch("[a-z0-9]?", key[index + 1 : index + 2]):
        return "_"
    return f"__0{ord(character):x}_"
