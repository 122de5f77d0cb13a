"""Rows as (column, text) pairs, their digests, and multisets of rows that take the memory of a few thousand numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from verify import line_rules
from verify.json_line import pairs_of
from verify.line_rules import BYTE_ORDER_MARK, RejectedError

Pairs = list[tuple[str, str]]
"""(Column, text) of every value that is not NULL, sorted."""
BUCKETS = 4096
MAX_FAST_BYTES = 1 << 22
"""Python's objects take up to 40 times the size of a nested value: a longer line is left to the slow rules."""
MODULUS = 1 << 128
DIGEST_PAIRS = 1000

MAX_CACHED_KEY = 200
"""Longer keys are not kept: an uploader chooses how many there are."""

_cached_name = lru_cache(maxsize=1 << 16)(line_rules.column_name)


def column_name(key: str) -> str:
    """The column of a key."""
    return _cached_name(key) if len(key) <= MAX_CACHED_KEY else line_rules.column_name(key)


def parse_row(line: bytes, *, first: bool) -> Pairs | None:
    """The row of a line, which is without its newline and not too long; None for a blank line.

    The fast parser decides only that a line is valid. Whatever it refuses is judged by the slow rules, which also name
    the reason.

    Raises
    ------
    RejectedError
        The line is not a row; its argument is the reason.
    """
    body = line.removeprefix(BYTE_ORDER_MARK) if first else line
    members = pairs_of(body) if len(body) <= MAX_FAST_BYTES else None
    if members is not None:
        return sorted((column_name(key), text) for key, text in members)
    parsed = line_rules.parse_line(line, first=first, max_line_bytes=len(line))
    if parsed is None:
        return None
    pairs = []
    while parsed:
        # Of a long line memory holds one form of each member.
        member = parsed.pop()
        text = member.text
        if text is not None:
            pairs.append((column_name(member.key), text))
    pairs.sort()
    return pairs


def rescued_pairs(text: str) -> Pairs:
    """The members in a value of ``_rescued``, as the columns that they would have."""
    try:
        return parse_row(text.encode(), first=False) or []
    except RejectedError:
        return [("_rescued", text)]


def row_digest(pairs: Pairs) -> int:
    """128 bits over the sorted pairs. A name has no NUL and a text has its length, so no two rows look alike."""
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, len(pairs), DIGEST_PAIRS):
        part = "".join([f"{name}\0{len(text)}\0{text}" for name, text in pairs[start : start + DIGEST_PAIRS]])
        digest.update(part.encode())
    return int.from_bytes(digest.digest(), "little")


@dataclass(slots=True)
class RowMultiset:
    """Rows in any order: their number, and the sum of their digests in each of ``BUCKETS`` buckets."""

    rows: int = 0
    sums: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    def add(self, digest: int) -> None:
        """Add one row."""
        self.rows += 1
        bucket = digest % BUCKETS
        self.sums[bucket] = (self.sums[bucket] + digest) % MODULUS

    def merge(self, other: RowMultiset) -> None:
        """Add all rows of another multiset."""
        self.rows += other.rows
        self.sums = [(mine + theirs) % MODULUS for mine, theirs in zip(self.sums, other.sums, strict=True)]

    def differing_buckets(self, other: RowMultiset) -> list[int]:
        """Buckets that do not hold the same rows; empty: both multisets are equal."""
        return [bucket for bucket in range(BUCKETS) if self.sums[bucket] != other.sums[bucket]]


def differing_columns(left: Pairs, right: Pairs) -> list[str]:
    """Columns in which two rows differ, sorted."""
    return sorted({name for name, _ in set(left) ^ set(right)})


def most_similar(row: Pairs, others: Sequence[Pairs]) -> Pairs | None:
    """The row of ``others`` that shares the most values with ``row``; None: none shares any."""
    values = set(row)
    best = max(others, key=lambda other: len(values & set(other)), default=None)
    return best if best is not None and values & set(best) else None
