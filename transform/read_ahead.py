"""Requests ranges of the next splits while one split is parsed, so that the parser seldom waits for the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from transform.storage import InputRanges
    from transform.task_model import Split

CHUNK_BYTES = 8 << 20
TAIL_BYTES = 64 << 10
"""Size of the first request after a split's end, for the rest of its last line; later ones are larger."""
MAX_REQUESTS_AHEAD = 12
MAX_BYTES_AHEAD = 16 << 20
"""Another request starts only below both limits."""


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


class ReadAhead:
    """Chunks of splits in order. A context manager: leaving it drops pending requests."""

    def __init__(self, source: InputRanges, splits: Sequence[Split], chunk_bytes: int = CHUNK_BYTES) -> None:
        self._source = source
        self._splits = splits
        self._chunk_bytes = chunk_bytes
        self._ranges = (item for index, split in enumerate(splits) for item in ranges_of(split, index, chunk_bytes))
        self._next: Range | None = next(self._ranges, None)
        self._requested: deque[tuple[Range, Future[Buffer]]] = deque()
        self._requested_bytes = 0
        self._pool = ThreadPoolExecutor(MAX_REQUESTS_AHEAD, thread_name_prefix="read-ahead")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def chunks(self, index: int) -> Iterator[Buffer]:
        """The bytes of one split from the byte before it, then what follows it until the end of the file.

        The caller stops early when it has the last line of the split. Call it once per split, with rising indexes.
        Raises what ``fetch`` of the source raises.
        """
        split = self._splits[index]
        self._request_more()
        while self._requested and self._requested[0][0].split <= index:
            received, future = self._requested.popleft()
            self._requested_bytes -= received.end - received.start
            if received.split != index:
                future.cancel()
                self._request_more()
                continue
            data = future.result()
            # The caller alone decides how long these bytes are kept.
            del future
            self._request_more()
            yield data
            del data
        yield from self._tail(split)

    def _tail(self, split: Split) -> Iterator[Buffer]:
        start, size = split.end, TAIL_BYTES
        while start < split.file.size:
            end = min(start + size, split.file.size)
            yield self._source.fetch(split.file, start, end)
            start, size = end, min(size * 4, self._chunk_bytes)

    def _request_more(self) -> None:
        while (
            self._next is not None
            and len(self._requested) < MAX_REQUESTS_AHEAD
            and self._requested_bytes < MAX_BYTES_AHEAD
        ):
            wanted = self._next
            future = self._pool.submit(self._source.fetch, self._splits[wanted.split].file, wanted.start, wanted.end)
            self._requested.append((wanted, future))
            self._requested_bytes += wanted.end - wanted.start
            self._next = next(self._ranges, None)
