"""Exact NDJSON to string columns: every line becomes a row or a reject with a reason, every value keeps its text.

Lines
    A row is a line of exactly one RFC 8259 object in valid UTF-8. White space around it is allowed. A line ends with LF
    or CRLF, which the last line of a file can lack. A file that ends with a newline has no empty last line. Blank lines
    (spaces, tabs, CR) are counted. A UTF-8 byte order mark at the start of a file is skipped.
    Always: lines = rows + rejects + blank lines.

Rejects
    The reason of a rejected line is the first that applies in the order of `REASONS`:

    1. It is too long: it has more than `max_line_bytes` bytes without its newline.
    2. It is not valid UTF-8.
    3. It is not JSON, or it is nested deeper than 256 levels, the row itself included: the first of both from the left.
    4. There are trailing characters after the value.
    5. The value is not an object.
    6. A key, or a string that is a value of the row itself, has a lone surrogate.
    7. Two keys of the row are equal after unescaping.

Values
    Strings are unescaped. Numbers, booleans, objects and arrays keep the exact characters of the line. null and a
    missing key are NULL. Nested values are not changed, and only their syntax is validated: they can have equal keys
    and lone surrogates.

Columns
    The column of a key is `column_name(key)`. Some members go to `_rescued` instead: those beyond the column limit,
    those with a key of more than 8,192 bytes, and those whose hashed column name belongs to another key. `_rescued` is
    the text of a JSON object with these members, verbatim and in the order of the line, or NULL.
"""

from ndjson_arrow._native import (
    REASONS,
    Batch,
    ParquetFile,
    Reader,
    Reject,
    SplitCounts,
    StringColumn,
    column_name,
    detect_codec,
    original_key,
)
from ndjson_arrow._read import RejectedLineError, UnreadableFileError, read

__all__ = [
    "REASONS",
    "Batch",
    "ParquetFile",
    "Reader",
    "Reject",
    "RejectedLineError",
    "SplitCounts",
    "StringColumn",
    "UnreadableFileError",
    "column_name",
    "detect_codec",
    "original_key",
    "read",
]
