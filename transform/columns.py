"""What the lake's columns are called, and what a Parquet file says of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from ndjson_arrow import column_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ORIGINAL_KEY = b"original_key"
OWN_COLUMNS = frozenset({"_rescued", "_source", "_arrived_at", "_offset"})


def arrow_schema(names: Sequence[str], keys: Sequence[str]) -> pa.Schema:
    """The columns of a reader's batch, all strings; the field metadata hold the original key of each."""
    return pa.schema(
        [pa.field(name, pa.string(), metadata=_metadata(name, key)) for name, key in zip(names, keys, strict=True)]
    )


def new_columns(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Columns of the input that were not known, in the order in which they were met."""
    known_names = {*known, *OWN_COLUMNS}
    return [name for name in names if name not in known_names]


def _metadata(name: str, key: str) -> dict[bytes, bytes] | None:
    # Of a hashed name the key is unknown until it is met again.
    if name in OWN_COLUMNS or (not key and name != column_name("")):
        return None
    return {ORIGINAL_KEY: key.encode()}
