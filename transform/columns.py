"""The lake's columns in a Parquet file: their types and original keys, and which of them are new to a dataset."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from ndjson_arrow import column_name

ORIGINAL_KEY = b"original_key"
ADDED_COLUMNS = frozenset({"_rescued", "_source", "_arrived_at", "_offset"})
"""Columns that the reader adds: no key of the input has these names (docs/columns.md)."""


def arrow_schema(names: Sequence[str], keys: Sequence[str]) -> pa.Schema:
    """The columns of a reader's batch, all strings; the metadata of a field hold its original key."""
    return pa.schema(
        [pa.field(name, pa.string(), metadata=_metadata(name, key)) for name, key in zip(names, keys, strict=True)]
    )


def new_columns(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Columns of the input that are not in ``known``, in order."""
    known_names = {*known, *ADDED_COLUMNS}
    return [name for name in names if name not in known_names]


def _metadata(name: str, key: str) -> dict[bytes, bytes] | None:
    # A known column with a hashed name has no key until the input has it again.
    if name in ADDED_COLUMNS or (not key and name != column_name("")):
        return None
    return {ORIGINAL_KEY: key.encode()}
