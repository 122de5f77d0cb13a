"""The room that is left in the runs of a plan, in a tree: a run with room is found without looking at every one.

A node holds the most free bytes and the most free files of the runs below it, each possibly of another run.
"""

from __future__ import annotations

CLOSED = -1
"""Room of a run that takes nothing more; less than any manifest needs, because an empty one needs 0."""
MAX_VISITS = 256
"""Nodes that a search visits. Runs with free bytes beside runs with free files mislead it; without a bound a plan of
many such runs would take quadratic time. A search that gives up costs a run that is less full."""


class OpenRuns:
    """Free bytes and free files of runs, which are numbered from 0 in the order of ``add``."""

    def __init__(self) -> None:
        self._leaves = 1
        self._runs = 0
        self._bytes = [CLOSED, CLOSED]
        self._files = [CLOSED, CLOSED]

    def add(self, free_bytes: int, free_files: int) -> int:
        """Number of a new run with this room."""
        if self._runs == self._leaves:
            self._grow()
        self._runs += 1
        self._set(self._runs - 1, free_bytes, free_files)
        return self._runs - 1

    def first_with(self, needed_bytes: int, needed_files: int) -> int | None:
        """The first run with this room; None: none has it, or none was found within ``MAX_VISITS`` nodes."""
        waiting = [1]
        for _ in range(MAX_VISITS):
            if not waiting:
                return None
            node = waiting.pop()
            if self._bytes[node] < needed_bytes or self._files[node] < needed_files:
                continue
            if node >= self._leaves:
                return node - self._leaves
            waiting += (2 * node + 1, 2 * node)
        return None

    def take(self, run: int, taken_bytes: int, taken_files: int) -> None:
        """Take room away; a run that is beyond a limit takes nothing more."""
        leaf = self._leaves + run
        self._set(run, self._bytes[leaf] - taken_bytes, self._files[leaf] - taken_files)

    def close(self, run: int) -> None:
        """The run takes nothing more."""
        self._set(run, CLOSED, CLOSED)

    def _set(self, run: int, free_bytes: int, free_files: int) -> None:
        node = self._leaves + run
        self._bytes[node], self._files[node] = free_bytes, free_files
        by_bytes, by_files = self._bytes, self._files
        while node > 1:
            node //= 2
            left, right = 2 * node, 2 * node + 1
            most_bytes = by_bytes[left] if by_bytes[left] > by_bytes[right] else by_bytes[right]
            most_files = by_files[left] if by_files[left] > by_files[right] else by_files[right]
            if by_bytes[node] == most_bytes and by_files[node] == most_files:
                return
            by_bytes[node], by_files[node] = most_bytes, most_files

    def _grow(self) -> None:
        """Twice the leaves: each of the old tree's nodes moves one level down."""
        old_bytes, old_files, leaves = self._bytes, self._files, self._leaves
        self._leaves = 2 * leaves
        self._bytes, self._files = [CLOSED] * (4 * leaves), [CLOSED] * (4 * leaves)
        width = 1
        while width <= leaves:
            self._bytes[2 * width : 3 * width] = old_bytes[width : 2 * width]
            self._files[2 * width : 3 * width] = old_files[width : 2 * width]
            width *= 2
        self._bytes[1], self._files[1] = self._bytes[2], self._files[2]
