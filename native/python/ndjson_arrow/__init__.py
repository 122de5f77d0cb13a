"""Exact JSON rows to string columns: every line becomes a row or a reject with a reason, every value keeps its text.

Lines
    A row is a line of exactly one RFC 8259 object in valid UTF-8. White space around it is allowed. A line ends with LF
    or CRLF, which the last line of a file can lack. A file that ends with a newline has no empty last line. Blank lines
    (spaces, tabs, CR) are counted. A UTF-8 byte order mark at the start of a file is skipped.
    Always: lines = rows + rejects + blank lines.

Arrays
    A file whose first byte after white space and blank lines is "[" is an array of rows. Its elements, without the
    white space around them, are treated as lines: "lines" counts them, and offsets are offsets of elements. Arrays can
    follow one another. If anything else follows an array, it is read as lines.

    Strings and brackets decide where an element ends, so an element that is not JSON is rejected alone:

    - A string that is not closed ends with its line, and the element with it.
    - A closing bracket closes the innermost open bracket of its kind, and all brackets opened after it. If its element
      has none, "]" closes the array, and any other bracket is a part of the element.
    - An element is empty if a comma has no element before or after it, and at the end of a file that does not close its
      array. It is not JSON.

    With `concatenated`, objects need no array around them: an object ends with its bracket. Text between two objects is
    one reject for each of its lines.

Rejects
    The reason of a rejected line is the first that applies in the order of `REASONS`:

    1. It is too long: it has more than `max_line_bytes` bytes without its newline.
    2. It is not valid UTF-8.
    3. It is not JSON, or it is nested deeper than 256 levels, including the row itself; the leftmost decides.
    4. There are trailing characters after the value.
    5. The value is not an object.
    6. A key, or a string that is a value of the row itself, has a lone surrogate.
    7. Two keys of the row are equal after unescaping.

Values
    Strings are unescaped. Numbers, booleans, objects and arrays keep the exact characters of the line. null and a
    missing key are NULL. Nested values are not changed, and only their syntax is validated: they can have equal keys
    and lone surrogates.

Columns
    The column of a key is `column_name(key)`. Some members go to `_rescued` instead: members beyond the column limit,
    with a key of more than 8,192 bytes, or with a hashed column name that belongs to another key. `_rescued` is
    the text of a JSON object with these members, verbatim and in the order of the line, or NULL.
"""

from ndjson_arrow._formats import CONCATENATED_REMEDY, find_other_format
from ndjson_arrow._native import (
    REASONS,
    Batch,
    ParquetFile,
    Reader,
    Reject,
    SplitCounts,
    StringColumn,
    can_split,
    column_name,
    detect_codec,
    original_key,
)
from ndjson_arrow._read import RejectedLineError, UnreadableFileError, read

__all__ = [
    "CONCATENATED_REMEDY",
    "REASONS",
    "Batch",
    "ParquetFile",
    "Reader",
    "Reject",
    "RejectedLineError",
    "SplitCounts",
    "StringColumn",
    "UnreadableFileError",
    "can_split",
    "column_name",
    "detect_codec",
    "find_other_format",
    "original_key",
    "read",
]
