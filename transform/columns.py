"""A reader's batch as an Arrow record batch, without copying, and what our own columns are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from ndjson_arrow import column_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ndjson_arrow import Batch

ORIGINAL_KEY = b"original_key"
SOURCE = "_source"
ARRIVED_AT = "_arrived_at"
OWN_COLUMNS = frozenset({"_rescued", SOURCE, "_offset", ARRIVED_AT})


def record_batch(batch: Batch, arrived_at: Mapping[str, str] | None) -> pa.RecordBatch:
    """Moves the columns out of ``batch``; the field metadata hold the original key of each.

    ``arrived_at`` gives the arrival time of each ``_source`` text; None: no provenance columns.
    """
    fields: list[pa.Field[Any]] = []
    arrays: list[pa.Array[Any]] = []
    for index, (name, key) in enumerate(zip(batch.names, batch.keys, strict=True)):
        array = pa.array(batch.column(index), pa.string())
        fields.append(pa.field(name, pa.string(), metadata=_metadata(name, key)))
        arrays.append(array)
        if name == SOURCE and arrived_at is not None:
            fields.append(pa.field(ARRIVED_AT, pa.string()))
            arrays.append(_arrivals(array, arrived_at))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def new_columns(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Columns of the input that were not known, in the order in which they were met."""
    known_names = {*known, *OWN_COLUMNS}
    return [name for name in names if name not in known_names]


def _metadata(name: str, key: str) -> dict[bytes, bytes] | None:
    # Of a hashed name the key is unknown until it is met again.
    if name in OWN_COLUMNS or (not key and name != column_name("")):
        return None
    return {ORIGINAL_KEY: key.encode()}


def _arrivals(sources: pa.Array[Any], arrived_at: Mapping[str, str]) -> pa.Array[Any]:
    distinct = pc.unique(sources)
    times = pa.array([arrived_at[str(source)] for source in distinct.to_pylist()], pa.string())
    return times.take(pc.index_in(sources, distinct))
