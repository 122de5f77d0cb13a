"""Exact NDJSON to string columns: every line becomes a row or a reject with a reason, every value keeps its text.

A line is exactly one RFC 8259 object in valid UTF-8, ended by LF or CRLF, with white space around it allowed. Blank
lines (spaces, tabs, CR) are counted, a UTF-8 byte order mark at the start of a file is skipped. Always:
lines = rows + rejects + blank lines. The last line may lack its newline; nothing after the last newline is no line.

A line that is no row is judged in the order of `REASONS`, the first that applies: too long (more bytes than
max_line_bytes without its newline, whatever it holds); invalid UTF-8; then from left to right not JSON, or nested more
than 256 deep (the row itself included); then trailing characters after the value; then a value that is no object;
then a lone surrogate in a key or string of the row itself; then two equal keys of the row, compared unescaped.

Strings are unescaped; numbers, booleans, objects and arrays stay the very characters that stood in the line; null and
an absent key are NULL. Inside of nested values nothing is changed and nothing but the syntax is judged: equal keys and
lone surrogates stay there as they stood.

A key gets the column `column_name(key)`. Keys beyond the column limit, keys longer than 8,192 bytes, and keys whose
hashed name is taken go to `_rescued`: a JSON object text of those members, verbatim and in file order, else NULL.
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

__all__ = [
    "REASONS",
    "Batch",
    "ParquetFile",
    "Reader",
    "Reject",
    "SplitCounts",
    "StringColumn",
    "column_name",
    "detect_codec",
    "original_key",
]
