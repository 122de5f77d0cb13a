"""The rules of a line and of column names, implemented a second time: simple instead of fast, without native/.

The parser is Python's standard library (RFC 8259), values exactly as in the file.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DEPTH = 256
MAX_NAME_LENGTH = 200
RESERVED = {"date", "hour", "_rescued", "_source", "_offset", "_arrived_at", "_tmp_metadata_row_index"}

LONE_SURROGATE = "lone surrogate"
DUPLICATE_KEY = "duplicate key"

SPACE = re.compile(r"[ \t\r\n]*")
# The pattern engine remembers each repetition of a group, so a match is limited to a piece of a string.
PIECE = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){1,1000}')
# Possessive, with look-ahead: `1e` and `1.` are invalid numbers, not a 1 with trailing characters.
FRACTION, EXPONENT = r"(?:\.[0-9]++|(?!\.))", r"(?:[eE][+-]?[0-9]++|(?![eE]))"
SCALAR = re.compile(rf"true|false|null|-?(?:0|[1-9][0-9]*+){FRACTION}{EXPONENT}")

SURROGATE = re.compile("[\ud800-\udfff]")
HASHED_NAME = re.compile("[a-z0-9_]{160}__1[0-9a-f]{32}_")


class RejectedError(Exception):
    """The line is rejected; the only argument is the reason."""


@dataclass(frozen=True, slots=True)
class Member:
    raw_key: str
    raw_value: str

    @property
    def key(self) -> str:
        return unescape(self.raw_key)

    @property
    def text(self) -> str | None:
        return column_text(self.raw_value)


@dataclass(slots=True)
class RowMembers:
    """The members of a row that is being parsed; memory holds none of a row that will be rejected."""

    members: list[Member] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    reason: str | None = None

    def add(self, raw_key: str, raw_value: str) -> None:
        """Keep the first reason in the order of the rules, whichever member has it."""
        if self.reason == LONE_SURROGATE:
            return
        try:
            key = unescape(raw_key)
            column_text(raw_value)
        except RejectedError as error:
            self._reject(str(error))
            return
        if self.reason is None and key in self.keys:
            self._reject(DUPLICATE_KEY)
        elif self.reason is None:
            self.keys.add(key)
            self.members.append(Member(raw_key, raw_value))

    def _reject(self, reason: str) -> None:
        self.reason = reason
        self.members, self.keys = [], set()


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
    row = RowMembers()
    position = skip_space(text, 0)
    is_object = text[position] == "{"
    position = skip_value(text, position, 0, row.add)
    if skip_space(text, position) != len(text):
        raise RejectedError("trailing characters")
    if not is_object:
        raise RejectedError("not an object")
    if row.reason is not None:
        raise RejectedError(row.reason)
    return row.members


def skip_space(text: str, position: int) -> int:
    return SPACE.match(text, position).end()  # type: ignore[union-attr]


def skip_value(text: str, position: int, depth: int, on_member: Callable[[str, str], None] | None = None) -> int:
    """The position after a valid value; ``on_member`` is called with key and value of each member of an object."""
    first = text[position : position + 1]
    if first == '"':
        return skip_string(text, position)
    if first in ("{", "["):
        if depth == MAX_DEPTH:
            raise RejectedError("too deep")
        return skip_container(text, position, depth + 1, on_member)
    match = SCALAR.match(text, position)
    if match is None:
        raise RejectedError("not JSON")
    return match.end()


def skip_container(text: str, position: int, depth: int, on_member: Callable[[str, str], None] | None) -> int:
    is_object = text[position] == "{"
    closing = "}" if is_object else "]"
    position = skip_space(text, position + 1)
    if text[position : position + 1] == closing:
        return position + 1
    while True:
        start = key_end = position
        if is_object:
            key_end = skip_string(text, position)
            position = skip_space(text, key_end)
            if text[position : position + 1] != ":":
                raise RejectedError("not JSON")
            position = skip_space(text, position + 1)
        value_end = skip_value(text, position, depth)
        if is_object and on_member is not None:
            on_member(text[start:key_end], text[position:value_end])
        position = skip_space(text, value_end)
        if text[position : position + 1] == closing:
            return position + 1
        if text[position : position + 1] != ",":
            raise RejectedError("not JSON")
        position = skip_space(text, position + 1)


def skip_string(text: str, position: int) -> int:
    end = position + 1
    while piece := PIECE.match(text, end):
        end = piece.end()
    if text[position : position + 1] != '"' or text[end : end + 1] != '"':
        raise RejectedError("not JSON")
    return end + 1


def unescape(literal: str) -> str:
    if "\\" not in literal:
        return literal[1:-1]
    text = json.loads(literal)
    assert isinstance(text, str)
    if SURROGATE.search(text):
        raise RejectedError(LONE_SURROGATE)
    return text


def column_text(value: str) -> str | None:
    if value == "null":
        return None
    return unescape(value) if value.startswith('"') else value


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


BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|[\[{\]}]')


def _no_constant(name: str) -> Any:  # noqa: ANN401
    raise ValueError(f"{name} is not valid JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)


def pairs_of(line: bytes) -> list[tuple[str, str]] | None:
    """(key, value as text) of all members that are not null; None if the line is not exactly one RFC 8259 object.

    None also for a number with so many digits that Python refuses it.
    """
    try:
        text = line.decode("utf-8")
        pairs, end = _object(text, SPACE.match(text, 0).end())  # type: ignore[union-attr]
        if SPACE.match(text, end).end() != len(text) or len({key for key, _ in pairs}) != len(pairs):  # type: ignore[union-attr]
            return None
        for key, value in pairs:
            key.encode("utf-8")
            if value is not None:
                value.encode("utf-8")
    except (ValueError, IndexError, RecursionError):
        return None
    return [(key, value) for key, value in pairs if value is not None]


def _object(text: str, at: int) -> tuple[list[tuple[str, str | None]], int]:
    def skip(position: int) -> int:
        return SPACE.match(text, position).end()  # type: ignore[union-attr]

    if text[at] != "{":
        raise ValueError("not an object")
    pairs: list[tuple[str, str | None]] = []
    at = skip(at + 1)
    if text[at] == "}":
        return pairs, at + 1
    while True:
        if text[at] != '"':
            raise ValueError("a key is missing")
        key, at = scanstring(text, at + 1, True)
        at = skip(at)
        if text[at] != ":":
            raise ValueError("a colon is missing")
        at = skip(at + 1)
        if text[at] == '"':
            value, at = scanstring(text, at + 1, True)
        else:
            start = at
            try:
                _, at = DECODER.raw_decode(text, start)
            except StopIteration as error:
                raise ValueError("a value is missing") from error
            value = text[start:at]
            if value[0] in "[{" and _depth(value) + 1 > MAX_DEPTH:
                raise ValueError("too deep")
            value = None if value == "null" else value
        pairs.append((key, value))
        at = skip(at)
        if text[at] == "}":
            return pairs, at + 1
        if text[at] != ",":
            raise ValueError("a comma is missing")
        at = skip(at + 1)


def _depth(value: str) -> int:
    max_level = value.count("[") + value.count("{")
    if max_level < MAX_DEPTH:
        return max_level
    max_level = level = 0
    for mark in (match.group() for match in BRACKETS.finditer(value)):
        if mark in "[{":
            level += 1
            max_level = max(max_level, level)
        elif mark in "]}":
            level -= 1
    return max_level
