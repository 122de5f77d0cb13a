"""Reads files as lines, and arrays as their elements: a second implementation of the rule of the conversion's reader.

Python's regular expressions find the next byte that decides something; every other byte belongs to the element.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from verify.line_rules import BYTE_ORDER_MARK, MAX_DEPTH
from verify.objects import ChunkStream

READ_BYTES = 64 << 10
BLANK = b" \t\r\n"
CONTENT = re.compile(rb"[^ \t\r\n]")
OUTSIDE = re.compile(rb'["{}\[\],\n]')
IN_STRING = re.compile(rb'["\\\n]')
ANY = re.compile(rb".", re.DOTALL)
RECORD_SEPARATOR = b"\x1e"
"""Precedes each value of a JSON text sequence (RFC 7464)."""
OPENING = (b"{", b"[")
PAIRS = {b"}": b"{", b"]": b"["}
ENDS = {"array": (b",",), "object": (), "text": (b"\n", *OPENING)}
"""Kind of element -> bytes outside strings and brackets before which it ends."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, an element of an array, or a concatenated value."""

    number: int
    offset: int
    length: int
    """Bytes without the newline, or without the white space around an element."""
    body: bytes | None
    is_element: bool = False


def unread(data: bytes, stream: io.BufferedIOBase) -> io.BufferedReader:
    """Return a stream of ``data``, which is not empty, and the rest of ``stream``."""
    rest = iter(partial(stream.read1, READ_BYTES), b"")
    return io.BufferedReader(ChunkStream(chain([data], rest)), READ_BYTES)


def lines_of(stream: io.BufferedIOBase, max_line_bytes: int, *, concatenated: bool = False) -> Iterator[Line]:
    """All lines or elements; memory holds one, of at most ``max_line_bytes``.

    ``concatenated`` is the setting ``convert.concatenated``.
    """
    return _lines(stream, 0, 0, max_line_bytes, concatenated=concatenated)


def _lines(
    stream: io.BufferedIOBase, start: int, number: int, max_bytes: int, *, concatenated: bool | None = None
) -> Iterator[Line]:
    """All lines from an offset on, or elements if they come first; only lines if ``concatenated`` is None."""
    is_blank = concatenated is not None
    while piece := stream.readline(max_bytes + 1):
        whole, end, newline = piece, start, False
        while piece:
            mark = len(BYTE_ORDER_MARK) if end == 0 and piece.startswith(BYTE_ORDER_MARK) else 0
            if is_blank and (content := CONTENT.search(piece, mark)):
                if content.group() == b"[" or concatenated:
                    rest = unread(piece[content.start() :], stream)
                    cursor = _Cursor(rest, end + content.start(), max_bytes)
                    yield from _elements(cursor, number, concatenated=bool(concatenated))
                    return
                is_blank = False
            end += len(piece)
            newline = piece.endswith(b"\n")
            piece = b"" if newline else stream.readline(max_bytes + 1)
        number += 1
        length = end - newline - start
        yield Line(number, start, length, whole.removesuffix(b"\n") if length <= max_bytes else None)
        start = end


class _Cursor:
    """A position in a stream, with the bytes of the element from its begin to this position."""

    def __init__(self, stream: io.BufferedIOBase, offset: int, max_bytes: int) -> None:
        self._stream, self._data, self._offset = stream, b"", offset
        """``_offset`` is the offset of ``_data`` in the file."""
        self.at = 0
        """Index of the next byte in the data."""
        self._begin = self._start = self._end = 0
        self._kept = bytearray()
        self._max_bytes = max_bytes

    @property
    def offset(self) -> int:
        return self._offset + self.at

    def find(self, pattern: re.Pattern[bytes]) -> bytes:
        """Go to the next match and return it; empty at the end of the file."""
        while (found := pattern.search(self._data, self.at)) is None:
            self.at = len(self._data)
            self._keep()
            self._offset += self.at
            self._data, self.at, self._begin = self._stream.read1(READ_BYTES), 0, 0
            if not self._data:
                return b""
        self.at = found.start()
        return found.group()

    def begin(self) -> None:
        """Begin an element here."""
        self._begin, self._start = self.at, self.offset
        self._kept.clear()

    def element(self, number: int) -> Line:
        """Return the element that ends here, without the white space before."""
        self._keep()
        length = self._end - self._start
        body = bytes(self._kept[:length]) if length <= self._max_bytes else None
        return Line(number, self._start, length, body, is_element=True)

    def lines(self, number: int) -> Iterator[Line]:
        """Read lines from this position on; at least one byte must be left."""
        return _lines(unread(self._data[self.at :], self._stream), self.offset, number, self._max_bytes)

    def _keep(self) -> None:
        piece = self._data[self._begin : self.at]
        if content := len(piece.rstrip(BLANK)):
            self._end = self._offset + self._begin + content
        self._kept += piece[: max(0, self._max_bytes - len(self._kept))]


def _elements(cursor: _Cursor, number: int, *, concatenated: bool) -> Iterator[Line]:
    """All elements, and all lines after an array if only arrays have elements."""
    # Outside arrays, or inside one: at its "first" element, at the "next" one after a comma, or "after" one.
    place = "outside"
    while mark := cursor.find(CONTENT):
        if place == "outside" and mark != b"[" and not concatenated:
            yield from cursor.lines(number)
            return
        if place == "outside" and mark in (b"[", RECORD_SEPARATOR):
            place = "first" if mark == b"[" else place
            cursor.at += 1
        elif place != "outside" and mark in (b"]", b","):
            if place == "next" if mark == b"]" else place != "after":
                number += 1
                yield Line(number, cursor.offset, 0, b"", is_element=True)
            place = "outside" if mark == b"]" else "next"
            cursor.at += 1
        else:
            kind = "array" if place != "outside" else "object" if mark == b"{" else "text"
            place = "outside" if place == "outside" else "after"
            cursor.begin()
            _go_to_end(cursor, kind)
            number += 1
            yield cursor.element(number)
    if place != "outside":
        yield Line(number + 1, cursor.offset, 0, b"", is_element=True)


def _go_to_end(cursor: _Cursor, kind: str) -> None:
    """Go to the end of an element. ``kind``: ``array`` if an array has it, else ``object`` or ``text``."""
    brackets, excess, in_string = bytearray(), 0, False
    while mark := cursor.find(IN_STRING if in_string else OUTSIDE):
        if (mark == b"\n") if in_string else (mark in ENDS[kind] and not brackets):
            return
        if mark == b"\\":
            cursor.at += 1
            if cursor.find(ANY) == b"\n":
                continue
        elif mark == b'"':
            in_string = not in_string
        elif mark in OPENING and len(brackets) == MAX_DEPTH:
            excess += 1
        elif mark in OPENING:
            brackets += mark
        elif mark in PAIRS and excess:
            excess -= 1
        elif mark in PAIRS and (innermost := brackets.rfind(PAIRS[mark])) >= 0:
            del brackets[innermost:]
        elif mark == b"]" and kind == "array":
            return
        cursor.at += 1
        if kind == "object" and not brackets:
            return
