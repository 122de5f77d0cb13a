"""What NDJSON bytes must become: a second implementation of the reader that is simple instead of fast.

It shares no code with native/: the rules of arrays, lines and column names come from verify/.
"""

import io
from dataclasses import dataclass, field

from verify.elements import lines_of
from verify.line_rules import Member, RejectedError, column_name, parse_line

MAX_KEY_BYTES = 8192


@dataclass(slots=True)
class OracleResult:
    lines: int = 0
    blank_lines: int = 0
    size: int = 0
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Offset of the line, and column -> text without NULLs."""
    rejects: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    """Offset and length of the line, the reason, and the line without its newline."""
    columns: dict[str, str | None] = field(default_factory=dict)
    """Column -> key, in order; None for a known column whose key is not found yet."""


def read(
    data: bytes,
    *,
    known_columns: tuple[str, ...] = (),
    column_limit: int = 1000,
    max_line_bytes: int = 16 << 20,
    concatenated: bool = False,
) -> OracleResult:
    result = OracleResult(size=len(data), columns=dict.fromkeys(known_columns))
    limit = max(column_limit, len(known_columns))
    for line in lines_of(io.BytesIO(data), max_line_bytes, concatenated=concatenated):
        raw = data[line.offset : line.offset + line.length]
        result.lines += 1
        verbatim: list[str] = []
        try:
            if line.body is None:
                raise RejectedError("line too long")
            members = parse_line(raw, first=line.offset == 0, verbatim=verbatim)
            if members is None and line.is_element:
                raise RejectedError("not JSON")
        except RejectedError as rejected:
            result.rejects.append((line.offset, line.length, str(rejected), raw))
            continue
        if members is None:
            result.blank_lines += 1
        else:
            result.rows.append((line.offset, to_row(members, verbatim, result.columns, limit)))
    return result


def to_row(members: list[Member], verbatim: list[str], columns: dict[str, str | None], limit: int) -> dict[str, str]:
    """Column -> text without NULLs; adds new columns (name -> key) to ``columns``. ``verbatim``: the members' text."""
    row: dict[str, str] = {}
    rescued: list[str] = []
    for (key, value), original in zip(members, verbatim, strict=True):
        name = column_name(key)
        has_column = name in columns or len(columns) < limit
        if not has_column or len(key.encode()) > MAX_KEY_BYTES:
            rescued.append(original)
            continue
        columns[name] = key
        if value is not None:
            row[name] = value
    if rescued:
        row["_rescued"] = "{" + ",".join(rescued) + "}"
    return row
