"""Requests ranges of the next splits while one split is parsed, so that the parser seldom waits for the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from transform.clients import InputRanges
    from transform.task_model import Split

CHUNK_BYTES = 8 << 20
TAIL_BYTES = 64 << 10
"""Size of the first request after a split's end, for the rest of its last line; later ones are larger."""
MAX_REQUESTS_AHEAD = 48
"""Requests that are under way at once: a store takes some 30 ms to the first byte, however small a file is."""
MAX_BYTES_AHEAD = 16 << 20
"""Another request starts only below both limits."""
MAX_BLOCK_FILES = 8
"""Small files that one thread requests one after another: to hand over each alone takes longer than to parse it."""
MAX_BLOCK_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes [start, end) of the file of the split with this index."""

    split: int
    start: int
    end: int


def ranges_of(split: Split, index: int, chunk_bytes: int) -> list[Range]:
    """The ranges that a split needs in any case: from the byte before it (was it a newline?) to its end."""
    first = max(split.start - 1, 0)
    return [Range(index, start, min(start + chunk_bytes, split.end)) for start in range(first, split.end, chunk_bytes)]


@dataclass(frozen=True, slots=True)
class Block:
    """A large range alone, or small files that one thread requests one after another."""

    ranges: deque[Range]
    answers: Future[deque[Buffer | Exception]]
    """For each range its bytes, or the error of its request."""


class ReadAhead:
    """Chunks of splits in order. A context manager: leaving it drops pending requests."""

    def __init__(self, source: InputRanges, splits: Sequence[Split], chunk_bytes: int = CHUNK_BYTES) -> None:
        self._source = source
        self._splits = splits
        self._chunk_bytes = chunk_bytes
        self._ranges = (item for index, split in enumerate(splits) for item in ranges_of(split, index, chunk_bytes))
        self._next: Range | None = next(self._ranges, None)
        self._blocks: deque[Block] = deque()
        """The first one can be received in part."""
        self._requested_bytes = 0
        self._closed = False
        self._pool = ThreadPoolExecutor(MAX_REQUESTS_AHEAD, thread_name_prefix="read-ahead")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def chunks(self, index: int) -> Iterator[Buffer]:
        """The bytes of one split from the byte before it, then what follows it until the end of the file.

        The caller stops early when it has the last line of the split. Call it once per split, with rising indexes.
        Raises what ``fetch`` of the source raises.
        """
        split = self._splits[index]
        self._request_more()
        while self._blocks and self._blocks[0].ranges[0].split <= index:
            if self._blocks[0].ranges[0].split < index:
                self._drop()
                self._request_more()
                continue
            data = self._receive()
            self._request_more()
            if isinstance(data, Exception):
                raise data
            yield data
            del data
        yield from self._tail(split)

    def _receive(self) -> Buffer | Exception:
        block = self._blocks[0]
        answers = block.answers.result()
        received = block.ranges.popleft()
        self._requested_bytes -= received.end - received.start
        if not block.ranges:
            self._blocks.popleft()
        # The caller alone decides how long these bytes are kept.
        return answers.popleft()

    def _drop(self) -> None:
        """Forget the next range, whose split ended early."""
        block = self._blocks[0]
        if len(block.ranges) > 1:
            self._receive()
            return
        (dropped,) = block.ranges
        self._requested_bytes -= dropped.end - dropped.start
        block.answers.cancel()
        self._blocks.popleft()

    def _tail(self, split: Split) -> Iterator[Buffer]:
        start, size = split.end, TAIL_BYTES
        while start < split.file.size:
            end = min(start + size, split.file.size)
            yield self._source.fetch(split.file, start, end)
            start, size = end, min(size * 4, self._chunk_bytes)

    def _request_more(self) -> None:
        while (
            self._next is not None
            and len(self._blocks) < MAX_REQUESTS_AHEAD
            and self._requested_bytes < MAX_BYTES_AHEAD
        ):
            ranges = self._next_block()
            self._requested_bytes += sum(item.end - item.start for item in ranges)
            self._blocks.append(Block(deque(ranges), self._pool.submit(self._fetch, ranges)))

    def _next_block(self) -> list[Range]:
        """The next ranges for one thread; where few files are left, each has a thread of its own."""
        ranges: list[Range] = []
        size = 0
        while self._next is not None:
            size += self._next.end - self._next.start
            share = (len(self._splits) - self._next.split) // MAX_REQUESTS_AHEAD
            if ranges and (size > MAX_BLOCK_BYTES or len(ranges) >= min(MAX_BLOCK_FILES, share)):
                break
            ranges.append(self._next)
            self._next = next(self._ranges, None)
        return ranges

    def _fetch(self, ranges: Sequence[Range]) -> deque[Buffer | Exception]:
        answers: deque[Buffer | Exception] = deque()
        for item in ranges:
            if self._closed:
                break
            try:
                answers.append(self._source.fetch(self._splits[item.split].file, item.start, item.end))
            except Exception as error:
                answers.append(error)
        return answers
