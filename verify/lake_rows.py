"""Rows of a published Parquet file, as pyarrow reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from verify.rows import Pairs, rescued_pairs

BATCH_ROWS = 4096
RESCUED = "_rescued"
OFFSET = "_offset"
"""A column that is there when the setting ``convert.provenance`` was on."""


def has_provenance(path: Path) -> bool:
    """Whether its rows say which line they come from."""
    return OFFSET in pq.read_schema(path).names


def read_pairs(path: Path) -> Iterator[Pairs]:
    """The rows in the file's order; members of ``_rescued`` appear as the columns that they would have."""
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        order = sorted(range(len(names)), key=names.__getitem__)
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            columns = [batch.column(index).to_pylist() for index in order]
            ordered = [names[index] for index in order]
            for values in zip(*columns, strict=True):
                pairs = [(name, str(text)) for name, text in zip(ordered, values, strict=True) if text is not None]
                yield _with_rescued(pairs)


def _with_rescued(pairs: Pairs) -> Pairs:
    rescued = [text for name, text in pairs if name == RESCUED]
    if not rescued:
        return pairs
    return sorted([*(pair for pair in pairs if pair[0] != RESCUED), *rescued_pairs(rescued[0])])
