"""The verification's fast parser of a line: RFC 8259 with Python's standard library, values exactly as in the file."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

MAX_DEPTH = 256
"""Levels of nesting: the product quarantines lines with more."""
SPACE = re.compile(r"[ \t\r\n]*")
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
