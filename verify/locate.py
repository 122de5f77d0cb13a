"""Where two multisets of rows differ: a second look at the rows of a few buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lake.manifest import ObjectVersion
from verify.elements import Line
from verify.report import Difference
from verify.rows import BUCKETS, Pairs, differing_columns, most_similar, row_digest

MAX_ROWS = 20_000
"""Maximum number of different rows of the lake that are kept; the buckets that are searched have about as many ..."""
MIN_BUCKETS = 8
"""... which are at least this number. A changed row is in two."""
MAX_CHARACTERS = 1 << 26
"""Maximum number of characters of the rows that are kept."""
MAX_FOUND = 5
"""Maximum number of rows that are reported on each side."""


def locate(
    inputs: Iterable[tuple[ObjectVersion, Line, Pairs]],
    lake: Iterable[tuple[str, Pairs]],
    buckets: list[int],
    rows: int,
) -> list[Difference]:
    """Rows that only one side has, those of the input first, in its order.

    Parameters
    ----------
    lake
        Rows with the URI of their object.
    buckets
        Buckets whose sums differ. If only some are looked at, the first differing line may be in another.
    rows
        Number of rows of the lake.
    """
    chosen = set(buckets[: max(MIN_BUCKETS, MAX_ROWS * BUCKETS // max(1, rows))])
    columns = ColumnSums()
    extra: Counter[int] = Counter()
    kept: dict[int, tuple[str, Pairs]] = {}
    beyond: dict[int, str] = {}
    characters = 0
    for uri, pairs in lake:
        columns.add(pairs, 1)
        digest = row_digest(pairs)
        if digest % BUCKETS not in chosen:
            continue
        extra[digest] += 1
        if digest in kept:
            continue
        if len(kept) < MAX_ROWS and characters < MAX_CHARACTERS:
            kept[digest] = uri, pairs
            characters += sum(len(text) for _, text in pairs)
        else:
            beyond[digest] = uri
    missing: list[tuple[ObjectVersion, Line, Pairs]] = []
    for file, line, pairs in inputs:
        columns.add(pairs, -1)
        digest = row_digest(pairs)
        if digest % BUCKETS not in chosen:
            continue
        if extra[digest] > 1:
            extra[digest] -= 1
        elif digest in extra:
            # Counter returns 0 for a missing key without keeping it.
            del extra[digest]
        elif len(missing) < MAX_FOUND:
            missing.append((file, line, pairs))
    rest = [kept[digest] for digest in extra if digest in kept]
    found = [_missing(file, line, pairs, rest, columns) for file, line, pairs in missing]
    found += [_extra(uri, f"a row of {len(pairs)} values") for uri, pairs in rest[:MAX_FOUND]]
    return found or [_extra(beyond[digest], "a row") for digest in list(extra)[:MAX_FOUND]]


class ColumnSums:
    """Which columns hold other values as a whole: it shows for rows of which no counterpart is kept."""

    def __init__(self) -> None:
        self._rows = 0
        self._sums: Counter[str] = Counter()

    def add(self, pairs: Pairs, sign: int) -> None:
        """Add a row of one side, or subtract one of the other."""
        self._rows += sign
        for name, text in pairs:
            # Hashes of one process are compared with each other only.
            self._sums[name] += sign * hash(text)

    def differing(self) -> tuple[str, ...]:
        """Names, sorted; none when one side has more rows, where every column differs."""
        return () if self._rows else tuple(sorted(name for name, total in self._sums.items() if total))


def _missing(
    file: ObjectVersion, line: Line, pairs: Pairs, rest: list[tuple[str, Pairs]], columns: ColumnSums
) -> Difference:
    """A changed row takes its counterpart out of ``rest``."""
    similar = most_similar(pairs, [other for _, other in rest])
    if similar is None:
        problem = "the lake does not have this row"
        return Difference(file.uri, problem, file.version, line.number, line.offset, columns.differing())
    uri = next(uri for uri, other in rest if other is similar)
    rest.remove((uri, similar))
    names = tuple(differing_columns(pairs, similar))
    return Difference(file.uri, f"the row differs in {uri}", file.version, line.number, line.offset, names)


def _extra(uri: str, row: str) -> Difference:
    return Difference(uri, f"has {row} that no input line of its manifest gives, or has it twice")
