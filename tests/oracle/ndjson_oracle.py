"""What NDJSON bytes must become, said a second time: standard library only, slow, and meant to be obviously right.

It shares no code and no idea of speed with native/. The grammar is RFC 8259 as regular expressions; the order in which
a line is judged and the rule for column names are written down again from their description.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DEEPEST = 256
MAX_KEY_BYTES = 8192
RESERVED = {"date", "hour", "_rescued", "_source", "_offset", "_arrived_at"}

SPACE = re.compile(r"[ \t\r\n]*")
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
# A number goes on as long as it can: `1e` and `1.` are broken numbers, not a 1 with something behind it.
FRACTION, EXPONENT = r"(?:\.[0-9]++|(?!\.))", r"(?:[eE][+-]?[0-9]++|(?![eE]))"
SCALAR = re.compile(rf"true|false|null|-?(?:0|[1-9][0-9]*+){FRACTION}{EXPONENT}")

HASHED = re.compile("[a-z0-9_]{160}__1[0-9a-f]{32}_")


class RejectedError(Exception):
    """The line is no row; the only argument is the reason."""


@dataclass(frozen=True, slots=True)
class Member:
    key: str
    raw_key: str
    raw_value: str
    text: str | None


@dataclass(slots=True)
class OracleResult:
    lines: int = 0
    blank_lines: int = 0
    size: int = 0
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    rejects: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    columns: dict[str, str | None] = field(default_factory=dict)


def read(
    data: bytes,
    *,
    start: int = 0,
    end: int | None = None,
    known_columns: tuple[str, ...] = (),
    column_limit: int = 1000,
    max_line_bytes: int = 16 << 20,
) -> OracleResult:
    """Everything about the lines whose first byte lies in [start, end); rows are (offset, column -> text)."""
    outcome = OracleResult(columns=dict.fromkeys(known_columns))
    limit = max(column_limit, len(known_columns))
    for offset, line in lines_of(data):
        if offset < start or (end is not None and offset >= end):
            continue
        raw = line.removesuffix(b"\n")
        outcome.lines += 1
        outcome.size += len(line)
        try:
            members = judge(raw, first=offset == 0, max_line_bytes=max_line_bytes)
        except RejectedError as rejected:
            outcome.rejects.append((offset, len(raw), str(rejected), raw))
            continue
        if members is None:
            outcome.blank_lines += 1
        else:
            outcome.rows.append((offset, to_row(members, outcome.columns, limit)))
    return outcome


def lines_of(data: bytes) -> list[tuple[int, bytes]]:
    """(offset, line with its newline)."""
    found = []
    start = 0
    while start < len(data):
        newline = data.find(b"\n", start)
        stop = len(data) if newline < 0 else newline + 1
        found.append((start, data[start:stop]))
        start = stop
    return found


def judge(raw: bytes, *, first: bool, max_line_bytes: int) -> list[Member] | None:
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
    at = after_space(text, 0)
    spans: list[tuple[str, str]] = []
    is_object = text[at] == "{"
    at = after_value(text, at, 0, spans)
    if after_space(text, at) != len(text):
        raise RejectedError("trailing characters")
    if not is_object:
        raise RejectedError("not an object")
    members = [Member(unescape(key), key, value, as_text(value)) for key, value in spans]
    if len({member.key for member in members}) < len(members):
        raise RejectedError("duplicate key")
    return members


def after_space(text: str, at: int) -> int:
    return SPACE.match(text, at).end()  # type: ignore[union-attr]


def after_value(text: str, at: int, depth: int, spans: list[tuple[str, str]] | None = None) -> int:
    """The position behind the value that starts at `at`, checking its syntax; notes the members of an object."""
    if at < len(text) and text[at] in "{[":
        if depth == DEEPEST:
            raise RejectedError("too deep")
        return after_container(text, at, depth + 1, spans)
    return matched(STRING if text[at : at + 1] == '"' else SCALAR, text, at)


def after_container(text: str, at: int, depth: int, spans: list[tuple[str, str]] | None) -> int:
    is_object = text[at] == "{"
    closing = "}" if is_object else "]"
    at = after_space(text, at + 1)
    if text[at : at + 1] == closing:
        return at + 1
    while True:
        key = ""
        if is_object:
            key_end = matched(STRING, text, at)
            key = text[at:key_end]
            at = after_space(text, key_end)
            if text[at : at + 1] != ":":
                raise RejectedError("not JSON")
            at = after_space(text, at + 1)
        value_end = after_value(text, at, depth)
        if spans is not None:
            spans.append((key, text[at:value_end]))
        at = after_space(text, value_end)
        if text[at : at + 1] == closing:
            return at + 1
        if text[at : at + 1] != ",":
            raise RejectedError("not JSON")
        at = after_space(text, at + 1)


def matched(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise RejectedError("not JSON")
    return match.end()


def unescape(literal: str) -> str:
    text = json.loads(literal)
    assert isinstance(text, str)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise RejectedError("lone surrogate")
    return text


def as_text(value: str) -> str | None:
    if value == "null":
        return None
    return unescape(value) if value.startswith('"') else value


def to_row(members: list[Member], columns: dict[str, str | None], limit: int) -> dict[str, str]:
    """Column -> text, NULLs left out; meets new columns (name -> key) on the way."""
    row: dict[str, str] = {}
    rescued: list[str] = []
    for member in members:
        name = column_name(member.key)
        fits = name in columns or len(columns) < limit
        if not fits or len(member.key.encode()) > MAX_KEY_BYTES:
            rescued.append(f"{member.raw_key}:{member.raw_value}")
            continue
        columns[name] = member.key
        if member.text is not None:
            row[name] = member.text
    if rescued:
        row["_rescued"] = "{" + ",".join(rescued) + "}"
    return row


def column_name(key: str) -> str:
    name = "".join(encoded(key, index) for index in range(len(key))) or "__0_"
    if name in RESERVED:
        name += "__"
    if len(name) > 200 or HASHED.fullmatch(name):
        return f"{name[:160]}__1{hashlib.sha256(key.encode()).hexdigest()[:32]}_"
    return name


def encoded(key: str, index: int) -> str:
    character = key[index]
    if re.fullmatch("[a-z0-9]", character):
        return character
    if re.fullmatch("[A-Z]", character):
        return "__" + character.lower()
    if character == "_" and re.fullmatch("[a-z0-9]?", key[index + 1 : index + 2]):
        return "_"
    return f"__0{ord(character):x}_"
