"""The rules of a line and of column names, implemented a second time: simple instead of fast, without native/.

The parser is Python's standard library (RFC 8259), values exactly as in the file.
"""

import hashlib
import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
INVALID_UTF8 = "invalid UTF-8"
MAX_DEPTH = 256
MAX_NAME_LENGTH = 200
RESERVED = {"date", "hour", "_rescued", "_source", "_offset", "_arrived_at", "_tmp_metadata_row_index"}

SPACE = re.compile(r"[ \t\r\n]*")
# A string without an end takes the rest of the text: a search from each of its quotes would be quadratic.
BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]}]', re.DOTALL)
# Possessive, with look-ahead: `1e` and `1.` are invalid numbers, not a 1 with trailing characters.
FRACTION, EXPONENT = r"(?:\.[0-9]++|(?!\.))", r"(?:[eE][+-]?[0-9]++|(?![eE]))"
SCALAR = re.compile(rf"true|false|null|-?(?:0|[1-9][0-9]*+){FRACTION}{EXPONENT}")

SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
SURROGATE = re.compile("[\ud800-\udfff]")
HASHED_NAME = re.compile("[a-z0-9_]{160}__1[0-9a-f]{32}_")


Member = tuple[str, str | None]
"""Key, and the value as text: strings unescaped, other values as in the line, None for null."""


class RejectedError(Exception):
    """The line is rejected; the only argument is the reason."""


def _refuse(name: str) -> Any:  # noqa: ANN401
    raise ValueError(f"{name} is not valid JSON")


def _drop(_: object) -> None:
    """Returns nothing: only the text of a nested value is kept."""


DECODER = json.JSONDecoder(parse_int=_drop, parse_float=_drop, parse_constant=_refuse, object_pairs_hook=_drop)


def parse_line(raw: bytes, *, first: bool, verbatim: list[str] | None = None) -> list[Member] | None:
    """The members of the row; None for a blank line. Each as it is in the line, key and value, goes to ``verbatim``."""
    if first:
        raw = raw.removeprefix(BYTE_ORDER_MARK)
    if not raw.strip(b" \t\r"):
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise RejectedError(INVALID_UTF8) from None
    deep = _first_bracket_too_deep(text)
    if deep is not None:
        # Any other error is before the end of this text.
        text = text[: deep + 1]
    position = skip_space(text, 0)
    is_object = text[position : position + 1] == "{"
    members: list[Member] = []
    try:
        position = _read_object(text, position, members, verbatim) if is_object else _skip_other(text, position)
    except ValueError as error:
        is_too_deep = deep is not None and getattr(error, "pos", 0) > deep
        raise RejectedError("too deep" if is_too_deep else "not JSON") from None
    if skip_space(text, position) != len(text):
        raise RejectedError("trailing characters")
    if not is_object:
        raise RejectedError("not an object")
    if SURROGATE_ESCAPE.search(text) and any(SURROGATE.search(part or "") for member in members for part in member):
        raise RejectedError("lone surrogate")
    if len({key for key, _ in members}) != len(members):
        raise RejectedError("duplicate key")
    return members


def skip_space(text: str, position: int) -> int:
    return SPACE.match(text, position).end()  # type: ignore[union-attr]


def _read_object(text: str, at: int, members: list[Member], verbatim: list[str] | None) -> int:
    """The position after the object. Raises ``ValueError``, with the attribute ``pos``: the text is not JSON there."""
    at = skip_space(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        key_start = at
        _expect('"', text, at)
        key, key_end = scanstring(text, at + 1, True)
        at = skip_space(text, key_end)
        _expect(":", text, at)
        start = skip_space(text, at + 1)
        value, at = DECODER.raw_decode(text, start)
        if text[start] != '"':
            value = None if text[start] == "n" else text[start:at]
        members.append((key, value))
        if verbatim is not None:
            verbatim.append(f"{text[key_start:key_end]}:{text[start:at]}")
        at = skip_space(text, at)
        if text[at : at + 1] == "}":
            return at + 1
        _expect(",", text, at)
        at = skip_space(text, at + 1)


def _expect(mark: str, text: str, at: int) -> None:
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark}", text, at)


def _skip_other(text: str, at: int) -> int:
    """The position after a value that is not an object; errors as in ``_read_object``."""
    if text[at : at + 1] in ('"', "["):
        return DECODER.raw_decode(text, at)[1]
    match = SCALAR.match(text, at)
    if match is None:
        raise json.JSONDecodeError("expected a value", text, at)
    return match.end()


def _first_bracket_too_deep(text: str) -> int | None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return None
    level = 0
    for match in BRACKETS.finditer(text):
        mark = match.group()
        level += (mark in ("[", "{")) - (mark in ("]", "}"))
        if level > MAX_DEPTH:
            return match.start()
    return None


def column_name(key: str) -> str:
    # A name has a character for each of the key's at least, and a long one keeps its first characters only.
    name = "".join(encode_character(key, index) for index in range(min(len(key), MAX_NAME_LENGTH + 1))) or "__0_"
    if name in RESERVED:
        name += "__"
    if len(name) > MAX_NAME_LENGTH or HASHED_NAME.fullmatch(name):
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
