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
OPENING = (b"{", b"[")
RECORD_SEPARATOR = 0x1E
"""Precedes each value of a JSON text sequence (RFC 7464)."""
PAIRS = {ord("}"): ord("{"), ord("]"): ord("[")}


_End = tuple[int, int, str | None]
"""End of an element in some bytes, number of bytes to skip there, and the next place; None if it does not end there."""


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


@dataclass(slots=True)
class _Element:
    """An element that is not yet read to its end."""

    start: int
    kind: str
    """``array`` for an element of an array; ``object`` or ``text`` for any other one."""
    kept: bytearray
    end: int = 0
    """Offset after its last byte that is not white space."""

    def keep(self, piece: bytes, offset: int, max_bytes: int) -> None:
        content = len(piece.rstrip(BLANK))
        if content:
            self.end = offset + content
        self.kept += piece[: max(0, max_bytes - len(self.kept))]

    def line(self, number: int, max_bytes: int) -> Line:
        length = self.end - self.start
        body = bytes(self.kept[:length]) if length <= max_bytes else None
        return Line(number, self.start, length, body, is_element=True)


def lines_of(stream: io.BufferedIOBase, max_line_bytes: int, *, concatenated: bool = False) -> Iterator[Line]:
    """All lines or elements; memory holds one, of at most ``max_line_bytes``.

    ``concatenated`` is the setting ``convert.concatenated``.
    """
    offset = number = 0
    while piece := stream.readline(max_line_bytes + 1):
        mark = len(BYTE_ORDER_MARK) if offset == 0 and piece.startswith(BYTE_ORDER_MARK) else 0
        start, content = offset, CONTENT.search(piece, mark)
        while content is None and not piece.endswith(b"\n") and (more := stream.readline(max_line_bytes + 1)):
            # White space that is longer than a line may be.
            offset, piece = offset + len(piece), more
            content = CONTENT.search(more)
        if content is None:
            number += 1
            length = offset + len(piece.removesuffix(b"\n")) - start
            yield Line(number, start, length, piece.removesuffix(b"\n") if length <= max_line_bytes else None)
            offset += len(piece)
        elif content.group() == b"[" or concatenated:
            rest = unread(piece[content.start() :], stream)
            cutter = _Cutter(rest, offset + content.start(), number, max_line_bytes, concatenated=concatenated)
            yield from cutter.elements()
            yield from _lines(cutter.stream, cutter.offset, cutter.number, max_line_bytes)
            return
        else:
            yield from _lines(unread(piece, stream), offset, number, max_line_bytes, start)
            return


def _lines(
    stream: io.BufferedIOBase, offset: int, number: int, max_bytes: int, start: int | None = None
) -> Iterator[Line]:
    """``start`` is where the first line starts, if its bytes before ``offset`` were read already."""
    start = offset if start is None else start
    while piece := stream.readline(max_bytes + 1):
        number += 1
        whole, end = piece, offset + len(piece)
        while not piece.endswith(b"\n") and (piece := stream.readline(max_bytes + 1)):
            end += len(piece)
        newline = int((piece or whole).endswith(b"\n"))
        length = end - newline - start
        yield Line(number, start, length, whole.removesuffix(b"\n") if length <= max_bytes else None)
        start = offset = end


class _Cutter:
    """Reads elements until the end of the file, or until lines follow."""

    def __init__(
        self, stream: io.BufferedIOBase, offset: int, number: int, max_bytes: int, *, concatenated: bool
    ) -> None:
        self.stream = stream
        self._max_bytes = max_bytes
        self._concatenated = concatenated
        self._place = "outside"
        """``outside`` of arrays; inside ``first``, ``next`` (after a comma) or ``broken`` (after a bad element)."""
        self._element: _Element | None = None
        self._brackets = bytearray()
        self._excess = 0
        self._in_string = self._escaped = False
        self.offset = offset
        """Offset of the next byte."""
        self.number = number

    def elements(self) -> Iterator[Line]:
        while data := self.stream.read1(READ_BYTES):
            at = 0
            while at < len(data):
                if self._element is None:
                    found = CONTENT.search(data, at)
                    position = len(data) if found is None else found.start()
                    self.offset += position - at
                    at = position
                    if found is None:
                        break
                    if self._place == "outside" and data[at] != ord("[") and not self._concatenated:
                        self.stream = unread(data[at:], self.stream)
                        return
                    step, is_empty = self._between(data[at])
                    if is_empty:
                        yield self._empty()
                    at += step
                    self.offset += step
                    continue
                end, skip, place = self._end_of(data, at)
                self._element.keep(data[at:end], self.offset, self._max_bytes)
                self.offset += end + skip - at
                at = end + skip
                if place is not None:
                    yield self._finished(place)
        if self._element is not None:
            yield self._finished("next" if self._element.kind == "array" else "outside")
        if self._place != "outside":
            yield self._empty()

    def _finished(self, place: str) -> Line:
        assert self._element is not None
        self.number += 1
        line = self._element.line(self.number, self._max_bytes)
        self._element, self._place = None, place
        return line

    def _empty(self) -> Line:
        self.number += 1
        return Line(self.number, self.offset, 0, b"", is_element=True)

    def _between(self, byte: int) -> tuple[int, bool]:
        """Bytes to skip, and whether an element is missing here. If none are skipped, an element begins."""
        place, mark = self._place, chr(byte)
        if place == "outside" and mark == "[":
            self._place = "first"
            return 1, False
        if place == "outside" and byte == RECORD_SEPARATOR:
            return 1, False
        if place != "outside" and mark == "]":
            self._place = "outside"
            return 1, place == "next"
        if place != "outside" and mark == ",":
            self._place = "next"
            return 1, place != "broken"
        kind = "array" if place != "outside" else "object" if mark == "{" else "text"
        self._element = _Element(self.offset, kind, bytearray())
        self._brackets.clear()
        self._excess = 0
        self._in_string = self._escaped = False
        return 0, False

    def _end_of(self, data: bytes, at: int) -> _End:
        assert self._element is not None
        kind = self._element.kind
        while at < len(data):
            if self._escaped:
                self._escaped = False
                at += data[at] != ord("\n")
                continue
            found = (IN_STRING if self._in_string else OUTSIDE).search(data, at)
            if found is None:
                break
            mark, position = found.group(), found.start()
            end = self._string_mark(mark, position, kind) if self._in_string else self._mark(mark, position, kind)
            if end is not None:
                return end
            at = position + 1
        return len(data), 0, None

    def _string_mark(self, mark: bytes, position: int, kind: str) -> _End | None:
        if mark == b"\n":
            return position, 1, "broken" if kind == "array" else "outside"
        self._in_string = self._escaped = mark == b"\\"
        return None

    def _mark(self, mark: bytes, position: int, kind: str) -> _End | None:
        """The end of the element, if this byte outside of strings ends it; None if the element continues."""
        if mark == b'"':
            self._in_string = True
        elif mark == b"\n":
            return (position, 1, "outside") if kind == "text" else None
        elif mark == b",":
            return (position, 1, "next") if kind == "array" and not self._brackets else None
        elif mark in OPENING:
            if kind == "text":
                return position, 0, "outside"
            self._open(mark[0])
        elif not self._close(PAIRS[mark[0]]) and mark == b"]" and kind == "array":
            return position, 1, "outside"
        elif kind == "object" and not self._brackets:
            return position + 1, 0, "outside"
        return None

    def _open(self, bracket: int) -> None:
        if len(self._brackets) == MAX_DEPTH:
            self._excess += 1
        else:
            self._brackets.append(bracket)

    def _close(self, bracket: int) -> bool:
        if self._excess:
            self._excess -= 1
            return True
        innermost = self._brackets.rfind(bracket)
        if innermost < 0:
            return False
        del self._brackets[innermost:]
        return True
