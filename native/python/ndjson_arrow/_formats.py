"""Recognises files of other formats by their first rejected lines. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ndjson_arrow._native import Reject, SplitCounts

EXPECTED = "expected one JSON object on each line"
CONCATENATED_REMEDY = "concatenated = true"
"""Names the option of ``find_other_format`` without which a file was not read."""
EXPECTED_VALUES = f"{EXPECTED}, or {CONCATENATED_REMEDY}"
EXPECTED_OBJECTS = "expected JSON objects"
CONCATENATED_VALUES = f"it looks like JSON objects without newlines between them; {EXPECTED_VALUES}"
BINARY = (
    (b"PAR1\x15", "a Parquet file"),
    (b"Obj\x01", "an Avro file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"ARROW1\x00\x00", "an Arrow file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"7z\xbc\xaf", "a 7z archive"),
)
"""No text begins with these. Lines that are cut out of such a file are not its rows, but for example its schema."""
COMPRESSED = (
    (b"\x04\x22\x4d\x18", "an LZ4 file"),
    (b"\xfd7zXZ", "an XZ file"),
    (b"\xff\x06\x00\x00sNaPpY", "a Snappy file"),
    (b"\x1f\x8b", "a gzip file that was compressed twice"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file that was compressed twice"),
)
"""A record that its producer compressed begins with one of these too, and rows can follow it."""
RECORD_SEPARATOR = b"\x1e"
TEXT_LIKE = (
    (b"ORC", "an ORC file"),
    (b"BZh", "a bzip2 file that was compressed twice"),
    (b"\xff\xfe", "text in UTF-16 or UTF-32"),
    (b"\xfe\xff", "text in UTF-16 or UTF-32"),
    (b"{\x00", "text in UTF-16 or UTF-32"),
    (b"\x00{", "text in UTF-16 or UTF-32"),
    (b"\x00[", "text in UTF-16 or UTF-32"),
    (RECORD_SEPARATOR, f"a JSON text sequence (RFC 7464), which {CONCATENATED_REMEDY} reads"),
    (b"%PDF", "a PDF file"),
)
"""Rows can follow a text that begins with one of these."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CONCATENATED = re.compile(rb'[ \t\r]*\{.*\}[ \t\r]*\{[ \t\r]*["}]')
BRACKET = re.compile(rb"[][{}]")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+("?)')
"""A string, closed or not: otherwise a search from each quote in a line of escaped quotes would read to its end."""
LOG_RECORD = b'"messageType":"DATA_MESSAGE"'
"""Text in a record of CloudWatch Logs. Firehose joins records without newlines; a single one is never too long."""
LINE_BREAKS = b"{[:,"
"""Bytes after which printers break JSON into lines."""
PATTERNS = (
    (re.compile(rb"\s*<[?!/A-Za-z_]"), "XML or HTML"),
    (re.compile(rb'(?:[^|{"]* )?(?:CEF|LEEF):\d'), "a CEF or LEEF log"),
    (re.compile(rb"(?:[A-Za-z_][\w.-]*:(?!//)[^\t]*(?:\t|$)){2,}$"), "an LTSV log"),
)
MILLISECONDS = re.compile(rb"(:\d\d),(?=\d{3}(?!\d))")
"""Milliseconds in a log's time, which can have a comma before them."""
SEPARATORS = (b",", b";", b"\t", b"|")
LINES_TO_COMPARE = 20
MIN_TABLE_LINES = 2


def find_other_format(counts: SplitCounts, rejects: Sequence[Reject], *, concatenated: bool) -> str | None:
    """What a file looks like and what is expected, as a clause for people, by the counts and first rejects of its
    first split; None if its lines are rejected one by one, as elements of an array.
    """
    if not rejects or (counts.elements and not concatenated):
        return None
    # First bytes of the first line of the file, if it was rejected, whether it was kept or not.
    opening = (rejects[0].line or rejects[0].head) if rejects[0].offset <= len(BYTE_ORDER_MARK) else None
    rows, reasons = counts.rows, counts.rejects
    kept = [reject.line for reject in rejects[:LINES_TO_COMPARE] if reject.line is not None]
    lines = kept or [rejects[0].head]
    # The first object of a line that is not kept can be longer than its head.
    is_cut = not kept and (
        [*reasons] == ["trailing characters"] or (reasons == {"line too long": 1} and LOG_RECORD in lines[0])
    )
    if not concatenated and (values := _values(lines, rows, reasons, opens_file=opening is not None, is_cut=is_cut)):
        return values
    numbers = (*BINARY, *COMPRESSED) if sum(reasons.values()) > rows else BINARY
    opening = opening or b""
    format_name = "a tar archive" if opening[256:262] == b"\0ustar" else _magic(opening, numbers)
    if rows == 0:
        # A zero byte of UTF-16 before the first of concatenated objects is a reject of its own.
        first = lines[0].removeprefix(BYTE_ORDER_MARK)
        start = b"".join(lines[:2]).lstrip(RECORD_SEPARATOR if concatenated else b"")
        text_format = next((name for pattern, name in PATTERNS if pattern.match(first)), None)
        format_name = format_name or _magic(start, TEXT_LIKE) or text_format or _table(lines)
    return format_name and f"it looks like {format_name}; {EXPECTED_OBJECTS if concatenated else EXPECTED}"


def _values(
    lines: Sequence[bytes], rows: int, rejects: Mapping[str, int], *, opens_file: bool, is_cut: bool
) -> str | None:
    """The clause for a file whose objects are not one on each line."""
    text = lines[0].removeprefix(BYTE_ORDER_MARK).removeprefix(RECORD_SEPARATOR)
    # A file with more rows than rejected lines only has broken lines.
    if opens_file and sum(rejects.values()) > max(rows, 1) and _is_printed(text, lines[1:]):
        return f"it looks like JSON that is printed over many lines; {EXPECTED_VALUES}"
    is_concatenated = CONCATENATED.match(STRING.sub(b'""', text)) or (is_cut and text.startswith(b"{"))
    return CONCATENATED_VALUES if rows == 0 and is_concatenated else None


def _is_printed(first: bytes, others: Sequence[bytes]) -> bool:
    """Whether the first line opens an object, and each line that leaves something open ends where printers break lines.

    Rows that were cut off can end there too, but each of them leaves something open.
    """
    ends = [_open_end(line) for line in (first, *others)]
    if not first.lstrip().startswith(b"{") or all(ends) or not ends[0] or b'"' in ends:
        return False
    follows = b"".join(others[:1]).lstrip()[:1]
    return follows == b"," or (all(end in LINE_BREAKS for end in ends) and (ends[0], follows) != (b",", b"{"))


def _open_end(line: bytes) -> bytes:
    """The last byte of a line that leaves brackets or a string open; empty if it leaves none."""
    outside = _replace_strings(line.strip(), b"0")
    brackets = Counter(outside)
    is_open = brackets[ord("{")] + brackets[ord("[")] > brackets[ord("}")] + brackets[ord("]")]
    return b'"' if b'"' in outside else outside[-1:] if is_open else b""


def _replace_strings(line: bytes, text: bytes) -> bytes:
    return STRING.sub(lambda found: text if found[1] else found[0], line)


def _magic(line: bytes, numbers: Sequence[tuple[bytes, str]]) -> str | None:
    return next((name for magic, name in numbers if line.startswith(magic)), None)


def _table(lines: Sequence[bytes]) -> str | None:
    """Lines with the same number of separators. In lines of a log, which all have brackets, only tabs count."""
    if len(lines) < MIN_TABLE_LINES or lines[0].startswith(b"{"):
        return None
    lines = [_replace_strings(line, b"") for line in lines]
    if all(map(BRACKET.search, lines)):
        lines = [b"\t" * BRACKET.split(line, 1)[0].count(b"\t") for line in lines]
    for separator in SEPARATORS:
        is_used = all(separator in MILLISECONDS.sub(rb"\1", line) for line in lines)
        if is_used and len({line.count(separator) for line in lines}) == 1:
            return "CSV" if separator != b"\t" else "tab-separated text"
    return None
