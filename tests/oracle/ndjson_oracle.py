"""What NDJSON bytes must become: a second implementation of the reader that is simple instead of fast.

It shares no code with native/: the rules of a line and of column names are those of verify/line_rules.py.
"""

from dataclasses import dataclass, field

from verify.line_rules import BYTE_ORDER_MARK, HASHED_NAME, RESERVED, Member, RejectedError, column_name, parse_line

__all__ = [
    "BYTE_ORDER_MARK",
    "HASHED_NAME",
    "MAX_KEY_BYTES",
    "RESERVED",
    "OracleResult",
    "RejectedError",
    "column_name",
    "read",
]

MAX_KEY_BYTES = 8192


@dataclass(slots=True)
class OracleResult:
    lines: int = 0
    blank_lines: int = 0
    size: int = 0
    """Bytes of all lines, newlines included."""
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Offset of the line, and column -> text without NULLs."""
    rejects: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    """Offset and length of the line, the reason, and the line without its newline."""
    columns: dict[str, str | None] = field(default_factory=dict)
    """Column -> key, in order; None for a known column whose key is not found yet."""


def read(
    data: bytes,
    *,
    start: int = 0,
    end: int | None = None,
    known_columns: tuple[str, ...] = (),
    column_limit: int = 1000,
    max_line_bytes: int = 16 << 20,
) -> OracleResult:
    """The result for the lines whose first byte is in [start, end)."""
    result = OracleResult(columns=dict.fromkeys(known_columns))
    limit = max(column_limit, len(known_columns))
    for offset, line in lines_of(data):
        if offset < start or (end is not None and offset >= end):
            continue
        raw = line.removesuffix(b"\n")
        result.lines += 1
        result.size += len(line)
        try:
            members = parse_line(raw, first=offset == 0, max_line_bytes=max_line_bytes)
        except RejectedError as rejected:
            result.rejects.append((offset, len(raw), str(rejected), raw))
            continue
        if members is None:
            result.blank_lines += 1
        else:
            result.rows.append((offset, to_row(members, result.columns, limit)))
    return result


def lines_of(data: bytes) -> list[tuple[int, bytes]]:
    """Offset and line with its newline, for every line."""
    lines = []
    start = 0
    while start < len(data):
        newline = data.find(b"\n", start)
        stop = len(data) if newline < 0 else newline + 1
        lines.append((start, data[start:stop]))
        start = stop
    return lines


def to_row(members: list[Member], columns: dict[str, str | None], limit: int) -> dict[str, str]:
    """Column -> text without NULLs; adds new columns (name -> key) to ``columns``."""
    row: dict[str, str] = {}
    rescued: list[str] = []
    for member in members:
        name = column_name(member.key)
        has_column = name in columns or len(columns) < limit
        if not has_column or len(member.key.encode()) > MAX_KEY_BYTES:
            rescued.append(f"{member.raw_key}:{member.raw_value}")
            continue
        columns[name] = member.key
        if member.text is not None:
            row[name] = member.text
    if rescued:
        row["_rescued"] = "{" + ",".join(rescued) + "}"
    return row
