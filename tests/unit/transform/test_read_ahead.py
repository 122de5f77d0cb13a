"""Chunks arrive in order, each for its split, whichever request ends first and wherever the parser stops."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.manifest import ObjectVersion
from transform.plan_attempt import split_files
from transform.source import CHUNK_BYTES, MAX_BYTES_AHEAD, ReadAhead, Requests, UnreadableFileError

if TYPE_CHECKING:
    from transform.task_model import Split


def file(key: str, size: int) -> ObjectVersion:
    return ObjectVersion("input", key, "e", size, "2026-03-04T12:00:00Z", "v")


class FakeSource:
    """Bodies by key; records its requests."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies = bodies
        self.requests: list[tuple[str, int, int]] = []
        self.requested = defaultdict[str, threading.Event](threading.Event)

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        self.requests.append((file.key, start, end))
        self.requested[file.key].set()
        if file.key not in self.bodies:
            raise UnreadableFileError("it was deleted")
        return self.bodies[file.key][start:end]


def ahead_of(source: FakeSource, splits: list[Split], chunk_bytes: int) -> ReadAhead:
    return ReadAhead(source, splits, chunk_bytes)  # type: ignore[arg-type]


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5), st.integers(1, 70), st.integers(1, 20))
def test_a_split_gets_the_byte_before_it_and_everything_after_it(
    bodies: list[bytes], split_bytes: int, chunk_bytes: int
) -> None:
    files = [file(str(number), len(body)) for number, body in enumerate(bodies)]
    source = FakeSource({item.key: body for item, body in zip(files, bodies, strict=True)})
    splits = split_files(files, (), split_bytes)
    with ahead_of(source, splits, chunk_bytes) as ahead:
        for index, split in enumerate(splits):
            got = b"".join(bytes(memoryview(chunk)) for chunk in ahead.chunks(index))
            assert got == source.bodies[split.file.key][max(split.start - 1, 0) :]


def test_the_next_files_are_requested_before_the_first_is_parsed() -> None:
    files = [file(str(number), 3) for number in range(5)]
    source = FakeSource({item.key: b"abc" for item in files})
    with ahead_of(source, split_files(files, (), 10), 8) as ahead:
        next(iter(ahead.chunks(0)))
        assert all(source.requested[item.key].wait(10) for item in files)


class SlowSource(FakeSource):
    """Answers its first requests when ``expected`` of them are under way at once."""

    def __init__(self, bodies: dict[str, bytes], expected: int) -> None:
        super().__init__(bodies)
        self._together = threading.Barrier(expected)
        self._first = iter(range(expected))
        self._lock = threading.Lock()
        self._under_way = 0
        self.most = 0
        """Requests that were under way at once."""

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        with self._lock:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            is_first = next(self._first, None) is not None
        if is_first:
            self._together.wait(10)
        with self._lock:
            self._under_way -= 1
        return super().fetch(file, start, end)


@pytest.mark.parametrize("count", [48, 480, 4_800])
def test_forty_eight_small_files_are_under_way_at_once(count: int) -> None:
    # Given files of 10 kB in a store that takes its time for each of them
    body = bytes(10_000)
    files = [file(str(number), len(body)) for number in range(count)]
    source = SlowSource({item.key: body for item in files}, 48)
    # When
    with ahead_of(source, split_files(files, (), CHUNK_BYTES), CHUNK_BYTES) as ahead:
        read = [sum(len(memoryview(chunk)) for chunk in ahead.chunks(index)) for index in range(count)]
    # Then no request has waited for a forty-eighth one in vain
    assert read == [len(body)] * count
    assert len(source.requests) == count


@pytest.mark.parametrize("requests", [Requests(1, 1), Requests(4, 32), Requests(3, 7)])
def test_a_disk_has_fewer_requests_at_once_and_larger_blocks(requests: Requests) -> None:
    # Given more files than the blocks that are under way hold
    files = [file(str(number), 3) for number in range(300)]
    source = SlowSource({item.key: f"{number:03}".encode() for number, item in enumerate(files)}, requests.ahead)
    # When
    with ReadAhead(source, split_files(files, (), 10), 8, requests) as ahead:  # type: ignore[arg-type]
        read = [b"".join(map(bytes, ahead.chunks(index))) for index in range(300)]
    # Then
    assert read == [f"{number:03}".encode() for number in range(300)]
    assert source.most == requests.ahead


def test_requested_bytes_are_bounded() -> None:
    large = file("a", 1 << 40)
    source = FakeSource({"a": b""})
    with ahead_of(source, split_files([large], (), 1 << 38), CHUNK_BYTES) as ahead:
        next(iter(ahead.chunks(0)))
    assert sum(end - start for _, start, end in source.requests) <= MAX_BYTES_AHEAD + 2 * CHUNK_BYTES


def test_a_split_that_ends_early_leaves_the_next_one_whole() -> None:
    files = [file("a", 9), file("b", 4)]
    source = FakeSource({"a": b"123456789", "b": b"next"})
    with ahead_of(source, split_files(files, (), 100), 2) as ahead:
        assert bytes(next(iter(ahead.chunks(0)))) == b"12"
        assert b"".join(map(bytes, ahead.chunks(1))) == b"next"


def test_an_unreadable_small_file_does_not_affect_its_neighbours() -> None:
    # Given more files than requests, so that one thread reads several
    files = [file(str(number), 4) for number in range(1_000)]
    source = FakeSource({item.key: b"next" for number, item in enumerate(files) if number % 7})
    with ahead_of(source, split_files(files, (), 100), 8) as ahead:
        for number in range(len(files)):
            if number % 7 == 0:
                with pytest.raises(UnreadableFileError):
                    list(ahead.chunks(number))
            else:
                assert b"".join(map(bytes, ahead.chunks(number))) == b"next"


def test_an_unreadable_file_does_not_affect_the_next_one() -> None:
    files = [file("gone", 9), file("b", 4)]
    source = FakeSource({"b": b"next"})
    with ahead_of(source, split_files(files, (), 100), 2) as ahead:
        with pytest.raises(UnreadableFileError):
            list(ahead.chunks(0))
        assert b"".join(map(bytes, ahead.chunks(1))) == b"next"
