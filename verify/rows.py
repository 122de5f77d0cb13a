"""Rows as (column, text) pairs, their digests, and multisets of rows, each with the memory of a few thousand numbers.

They come from an input file, by the verification's own parser, or from a published Parquet file, by pyarrow.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lake.aws_types import S3Client
from lake.manifest import ObjectVersion
from verify import line_rules
from verify.elements import Line, lines_of
from verify.line_rules import RejectedError
from verify.objects import open_text
from verify.report import Difference

Pairs = list[tuple[str, str]]
"""(Column, text) of every value that is not NULL, sorted."""
BUCKETS = 4096
MODULUS = 1 << 128
DIGEST_PAIRS = 1000

MAX_CACHED_KEY = 200
"""Maximum length of cached keys: uploaders choose how many keys there are."""

_cached_name = lru_cache(maxsize=1 << 16)(line_rules.column_name)


def column_name(key: str) -> str:
    return _cached_name(key) if len(key) <= MAX_CACHED_KEY else line_rules.column_name(key)


def parse_row(line: bytes, *, first: bool) -> Pairs | None:
    """The row of a line, which has no newline and is not too long; None for a blank line.

    Raises ``RejectedError``, whose argument is the reason, if the line is not a row.
    """
    members = line_rules.parse_line(line, first=first)
    return None if members is None else sorted((column_name(key), text) for key, text in members if text is not None)


def rescued_pairs(text: str) -> Pairs:
    """The members in a value of ``_rescued``, as the columns that they would have."""
    try:
        return parse_row(text.encode(), first=False) or []
    except RejectedError:
        return [("_rescued", text)]


def row_digest(pairs: Pairs) -> int:
    """128 bits over the sorted pairs. A name has no NUL and a text has its length, so no two rows are encoded alike."""
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
        self.rows += 1
        bucket = digest % BUCKETS
        self.sums[bucket] = (self.sums[bucket] + digest) % MODULUS

    def merge(self, other: "RowMultiset") -> None:
        self.rows += other.rows
        self.sums = [(mine + theirs) % MODULUS for mine, theirs in zip(self.sums, other.sums, strict=True)]

    def differing_buckets(self, other: "RowMultiset") -> list[int]:
        """Buckets that hold different rows; empty if both multisets are equal."""
        return [bucket for bucket in range(BUCKETS) if self.sums[bucket] != other.sums[bucket]]


def row_of(line: Line) -> Pairs | None:
    """The row of a line or an element; None for a blank line. Raises ``RejectedError`` with the reason."""
    if line.body is None:
        raise RejectedError("line too long")
    pairs = parse_row(line.body, first=line.offset == 0)
    if pairs is None and line.is_element:
        raise RejectedError("not JSON")
    return pairs


class InputRules(NamedTuple):
    """The settings with which the rows of a manifest were converted."""

    max_line_bytes: int
    concatenated: bool
    provenance: bool
    """Whether rows have the columns ``_source``, ``_offset`` and ``_arrived_at``."""


def read_lines(s3: S3Client, file: ObjectVersion, rules: InputRules) -> Iterator[tuple[Line, Pairs | str | None]]:
    """The lines of a file, in order, each with its row, or its reason of rejection, or None if it is blank.

    Raises ``GoneError`` if S3 no longer has this version; ``OSError``, ``EOFError`` or ``ValueError`` if it cannot be
    decompressed to its end.
    """
    source = file.uri if file.version_id is None else f"{file.uri}?versionId={file.version_id}"
    with open_text(s3, file) as stream:
        for line in lines_of(stream, rules.max_line_bytes, concatenated=rules.concatenated):
            try:
                pairs = row_of(line)
            except RejectedError as rejected:
                yield line, str(rejected)
                continue
            if pairs is not None and rules.provenance:
                places = [("_source", source), ("_offset", str(line.offset)), ("_arrived_at", file.arrived_at)]
                pairs = sorted([*pairs, *places])
            yield line, pairs


BATCH_ROWS, BATCH_VALUES, BATCH_BYTES = 4096, 1 << 18, 32 << 20
"""Limits of a decoded batch of one row group. A row can have 16 MiB; bytes count a value of a dictionary once. A batch
costs 15 us for each column: with 16 rows, ten times as much as its values."""
RESCUED = "_rescued"


def columns_of(path: Path) -> dict[str, int | None]:
    ids = {field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in pq.read_schema(path)}
    return {name: None if number is None else int(number) for name, number in ids.items()}


class ColumnTypeError(ValueError):
    """A column of a published file is not a string; the message names it."""


def read_pairs(path: Path) -> Iterator[Pairs]:
    """The rows in the file's order; members of ``_rescued`` appear as the columns that they would have.

    Raises ``ColumnTypeError`` for another type: it can have the same texts, but the table declares strings.
    """
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        columns_of_file = frozenset(names)
        for column in file.schema_arrow:
            if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
                raise ColumnTypeError(f"its column {column.name} is of type {column.type} and not a string")
        order = sorted(range(len(names)), key=names.__getitem__)
        ordered = [names[index] for index in order]
        for batch in read_batches(file):
            columns = [batch.column(index).to_pylist() for index in order]
            for values in zip(*columns, strict=True):
                pairs = [(name, str(text)) for name, text in zip(ordered, values, strict=True) if text is not None]
                yield _with_rescued(pairs, columns_of_file)


def read_batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Rows in order, in batches of at most ``BATCH_ROWS``, ``BATCH_VALUES`` and about ``BATCH_BYTES``, or one row."""
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        rows = BATCH_BYTES * group.num_rows // max(1, group.total_byte_size)
        rows = min(rows, BATCH_ROWS, BATCH_VALUES // max(1, group.num_columns))
        yield from file.iter_batches(batch_size=max(1, rows), row_groups=[number])


def _with_rescued(pairs: Pairs, columns: Collection[str]) -> Pairs:
    """Replace ``_rescued`` by its members. A member with the plain name of a column of the file gets a prefix."""
    rescued = [text for name, text in pairs if name == RESCUED]
    if not rescued:
        return pairs
    members = [
        (f"{RESCUED}.{name}" if name in columns and not line_rules.HASHED_NAME.fullmatch(name) else name, text)
        for name, text in rescued_pairs(rescued[0])
    ]
    return sorted([*(pair for pair in pairs if pair[0] != RESCUED), *members])


MAX_ROWS = 20_000
"""Approximate number of rows of the lake in the buckets that are searched."""
MIN_BUCKETS = 8
"""Minimum number of buckets that are searched; a changed row is in two."""
MAX_FOUND = 5
"""Maximum number of places that are reported for each side."""


def locate(
    inputs: Iterable[tuple[ObjectVersion, Line, Pairs]],
    lake: Iterable[tuple[str, Pairs]],
    buckets: list[int],
    rows: int,
) -> list[Difference]:
    """Rows that only one side has: first lines of the input, in its order, then objects of the lake.

    ``lake`` has rows with the URI of their object. ``buckets`` are the buckets whose sums differ; if only some are
    searched, the first differing line may be in another. ``rows`` is the number of rows in the lake.
    """
    chosen = set(buckets[: max(MIN_BUCKETS, MAX_ROWS * BUCKETS // max(1, rows))])
    extra, uris = Counter[int](), dict[int, str]()
    for uri, pairs in lake:
        digest = row_digest(pairs)
        if digest % BUCKETS in chosen:
            extra[digest] += 1
            uris[digest] = uri
    missing: list[Difference] = []
    for file, line, pairs in inputs:
        digest = row_digest(pairs)
        if digest % BUCKETS not in chosen:
            continue
        # Counter returns 0 for a missing key without storing it.
        if extra[digest]:
            extra[digest] -= 1
        elif len(missing) < MAX_FOUND:
            problem = "the lake does not have this row"
            missing.append(Difference(file.uri, problem, file.version, line.number, line.offset))
    places = dict.fromkeys(uris[digest] for digest, number in extra.items() if number)
    problem = "has a row without an input line in its manifest, or has it twice"
    return [*missing, *(Difference(uri, problem) for uri in list(places)[:MAX_FOUND])]
