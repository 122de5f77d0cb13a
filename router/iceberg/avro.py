"""Avro files of an Iceberg table: manifests and manifest lists, as the specification of format version 2 has them.

https://iceberg.apache.org/spec/#manifests. The fields that the product does not use are written as null, and those of
other writers are kept when a manifest of theirs is written again.
"""

from __future__ import annotations

import io
import json
from datetime import date
from typing import TYPE_CHECKING, Any

import fastavro

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CODEC = "deflate"
"""What Python's standard library can read and write. Tables name it as gzip, so that other writers take it too."""
EPOCH = date(1970, 1, 1)


def _optional(name: str, kind: Any, field_id: int) -> dict[str, Any]:  # noqa: ANN401
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _required(name: str, kind: Any, field_id: int) -> dict[str, Any]:  # noqa: ANN401
    return {"name": name, "type": kind, "field-id": field_id}


def _map(name: str, field_id: int, key_id: int, value: str) -> dict[str, Any]:
    fields = [_required("key", "int", key_id), _required("value", value, key_id + 1)]
    item = {"type": "record", "name": f"k{key_id}_v{key_id + 1}", "fields": fields}
    return _optional(name, {"type": "array", "logicalType": "map", "items": item}, field_id)


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


_PARTITION = _record(
    "r102", _optional("date", {"type": "int", "logicalType": "date"}, 1000), _optional("hour", "int", 1001)
)
_DATA_FILE = _record(
    "r2",
    _required("content", "int", 134),
    _required("file_path", "string", 100),
    _required("file_format", "string", 101),
    _required("partition", _PARTITION, 102),
    _required("record_count", "long", 103),
    _required("file_size_in_bytes", "long", 104),
    _map("column_sizes", 108, 117, "long"),
    _map("value_counts", 109, 119, "long"),
    _map("null_value_counts", 110, 121, "long"),
    _map("nan_value_counts", 137, 138, "long"),
    _map("lower_bounds", 125, 126, "bytes"),
    _map("upper_bounds", 128, 129, "bytes"),
    _optional("key_metadata", "bytes", 131),
    _optional("split_offsets", {"type": "array", "items": "long", "element-id": 133}, 132),
    _optional("equality_ids", {"type": "array", "items": "int", "element-id": 136}, 135),
    _optional("sort_order_id", "int", 140),
)
DATA_FILE_FIELDS = tuple(str(field["name"]) for field in _DATA_FILE["fields"])
_ENTRY = _record(
    "manifest_entry",
    _required("status", "int", 0),
    _optional("snapshot_id", "long", 1),
    _optional("sequence_number", "long", 3),
    _optional("file_sequence_number", "long", 4),
    _required("data_file", _DATA_FILE, 2),
)
_SUMMARY = _record(
    "r508",
    _required("contains_null", "boolean", 509),
    _optional("contains_nan", "boolean", 518),
    _optional("lower_bound", "bytes", 510),
    _optional("upper_bound", "bytes", 511),
)
_MANIFEST = _record(
    "manifest_file",
    _required("manifest_path", "string", 500),
    _required("manifest_length", "long", 501),
    _required("partition_spec_id", "int", 502),
    _required("content", "int", 517),
    _required("sequence_number", "long", 515),
    _required("min_sequence_number", "long", 516),
    _required("added_snapshot_id", "long", 503),
    _required("added_files_count", "int", 504),
    _required("existing_files_count", "int", 505),
    _required("deleted_files_count", "int", 506),
    _required("added_rows_count", "long", 512),
    _required("existing_rows_count", "long", 513),
    _required("deleted_rows_count", "long", 514),
    _optional("partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}, 507),
    _optional("key_metadata", "bytes", 519),
)
_ENTRY_SCHEMA, _MANIFEST_SCHEMA = fastavro.parse_schema(_ENTRY), fastavro.parse_schema(_MANIFEST)


def encode_manifest(entries: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> bytes:
    """A manifest file; ``header`` has the table's schema and partition fields, as objects that JSON can hold."""
    return _encode(_ENTRY_SCHEMA, entries, {**header, "format-version": "2", "content": "data"})


def decode_manifest(body: bytes) -> list[dict[str, Any]]:
    """All entries of a manifest file of any writer, those that say that a file was deleted as well.

    Raises ``ValueError`` for a codec that other writers were told not to use.
    """
    entries = _decode(_ENTRY_SCHEMA, body)
    for entry in entries:
        partition = entry["data_file"]["partition"]
        if isinstance(partition["date"], date):
            partition["date"] = (partition["date"] - EPOCH).days
    return entries


def encode_manifest_list(manifests: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> bytes:
    """A manifest list; ``header`` has the ids of the snapshot and of its parent, and the sequence number."""
    return _encode(_MANIFEST_SCHEMA, manifests, {**header, "format-version": "2"})


def decode_manifest_list(body: bytes) -> list[dict[str, Any]]:
    """The manifests of a snapshot, as any writer lists them."""
    return _decode(_MANIFEST_SCHEMA, body)


def _encode(schema: Any, records: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> bytes:  # noqa: ANN401
    target = io.BytesIO()
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in header.items()}
    fastavro.writer(target, schema, records, codec=CODEC, metadata=metadata)
    return target.getvalue()


def _decode(schema: Any, body: bytes) -> list[dict[str, Any]]:  # noqa: ANN401
    return list(fastavro.reader(io.BytesIO(body), reader_schema=schema))  # type: ignore[arg-type]
