"""Keeps the network ahead of the parser: ranges of coming splits are under way while one is parsed."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from transform.source import Source
    from transform.task_model import Split

CHUNK_BYTES = 8 << 20
TAIL_BYTES = 64 << 10
"""First request behind a split's end, where the rest of its last line is; later ones are larger."""
REQUESTS_AHEAD = 12
BYTES_AHEAD = 16 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes [start, end) of the file of the split with this index."""

    split: int
    start: int
    end: int


def ranges_of(split: Split, index: int, chunk_bytes: int) -> list[Range]:
    """What a split surely needs: from the byte before it (did the line before end there?) to its end."""
    first = max(split.start - 1, 0)
    return [Range(index, at, min(at + chunk_bytes, split.end)) for at in range(first, split.end, chunk_bytes)]


class ReadAhead:
    """Chunks of splits in order. A context: leaving it drops what is under way."""

    def __init__(self, source: Source, splits: Sequence[Split], chunk_bytes: int = CHUNK_BYTES) -> None:
        self._source = source
        self._splits = splits
        self._chunk_bytes = chunk_bytes
        self._coming = (item for index, split in enumerate(splits) for item in ranges_of(split, index, chunk_bytes))
        self._next: Range | None = next(self._coming, None)
        self._under_way: deque[tuple[Range, Future[Buffer]]] = deque()
        self._bytes_under_way = 0
        self._pool = ThreadPoolExecutor(REQUESTS_AHEAD, thread_name_prefix="read-ahead")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def chunks(self, index: int) -> Iterator[Buffer]:
        """The bytes of one split, then of what follows it, until the end of the file; stop early when it is enough.

        Raises what ``Source.fetch`` raises.
        """
        split = self._splits[index]
        self._start()
        while self._under_way and self._under_way[0][0].split <= index:
            item, future = self._under_way.popleft()
            self._bytes_under_way -= item.end - item.start
            if item.split != index:
                future.cancel()
                self._start()
                continue
            data = future.result()
            # Whoever reads must be the only one to keep these bytes.
            del future
            self._start()
            yield data
            del data
        yield from self._tail(split)

    def _tail(self, split: Split) -> Iterator[Buffer]:
        at, size = split.end, TAIL_BYTES
        while at < split.file.size:
            end = min(at + size, split.file.size)
            yield self._source.fetch(split.file, at, end)
            at, size = end, min(size * 4, self._chunk_bytes)

    def _start(self) -> None:
        while self._next is not None and len(self._under_way) < REQUESTS_AHEAD and self._bytes_under_way < BYTES_AHEAD:
            item = self._next
            future = self._pool.submit(self._source.fetch, self._splits[item.split].file, item.start, item.end)
            self._under_way.append((item, future))
            self._bytes_under_way += item.end - item.start
            self._next = next(self._coming, None)
