"""The metadata document of a table: schema, snapshots, properties. Pure: each function returns another document.

Also the Avro files of a table, manifests and manifest lists, by version 2 of the specification
(https://iceberg.apache.org/spec/#manifests). Fields that the product does not use are null; fields of other writers are
kept when their manifest is written again.
"""

import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise, takewhile
from math import inf
from typing import Any

import fastavro

from lake.ledger.datasets import AFTER_LAST_FIELD_ID, FIRST_FIELD_ID, field_id
from lake.manifest import Partition

Metadata = dict[str, Any]
BATCH = "hybrid-router.batch"
"""Property of the table and of each snapshot: number of the last batch, written in the same swap as its files."""
BATCH_SNAPSHOT = "hybrid-router.snapshot"
"""Property of the table: id of the snapshot of the last batch."""
TAG = "hybrid_router"
"""Name of the reference that keeps the snapshot of the last batch."""
NAME_MAPPING = "schema.name-mapping.default"
"""Property of the table: maps names in files without field ids to columns."""
METADATA_COLUMNS = frozenset(
    {
        "_change_ordinal",
        "_change_type",
        "_commit_snapshot_id",
        "_deleted",
        "_file",
        "_last_updated_sequence_number",
        "_partition",
        "_pos",
        "_row_id",
        "_spec_id",
    }
)
"""Names that readers use for columns of their own. A schema with such a name makes the table unreadable in Spark
(https://iceberg.apache.org/spec/#reserved-field-ids)."""
PARTITION_FIELDS = (
    {"source-id": 1, "field-id": 1000, "name": "date", "transform": "identity"},
    {"source-id": 2, "field-id": 1001, "name": "hour", "transform": "identity"},
)
SPEC = 0
STATISTICS = ("statistics", "partition-statistics")
"""Lists in a document that only other writers fill."""
PROPERTIES = {
    # With this, Spark's expire_snapshots and remove_orphan_files refuse: only the sweep deletes objects of the lake.
    "gc.enabled": "false",
    "write.avro.compression-codec": "gzip",
    "write.metadata.previous-versions-max": "20",
}
MAX_PREVIOUS_VERSIONS = 20


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of the lake, as a manifest of the table lists it."""

    path: str
    size: int
    rows: int
    hour: tuple[int, int]
    """The partition: days since 1970-01-01, and hour of the day."""


def hour_of(partition: Partition) -> tuple[int, int]:
    """The values of the table's partition fields for an hour of a dataset."""
    return (date.fromisoformat(partition.date) - EPOCH).days, partition.hour


def new_metadata(location: str, table_uuid: str, batch: int, now: int) -> Metadata:
    """The document of a table without rows; ``now`` is in milliseconds since the epoch.

    ``batch`` is the number of the last batch of the table before it; 0 for a new dataset.
    """
    fields = [
        {"id": 1, "name": "date", "required": False, "type": "date"},
        {"id": 2, "name": "hour", "required": False, "type": "int"},
    ]
    return {
        "format-version": 2,
        "table-uuid": table_uuid,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": now,
        # Other writers give higher ids to the columns that they add; no file has them.
        "last-column-id": AFTER_LAST_FIELD_ID,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": SPEC,
        "partition-specs": [{"spec-id": SPEC, "fields": list(PARTITION_FIELDS)}],
        "last-partition-id": 1001,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {BATCH: str(batch), **PROPERTIES, NAME_MAPPING: _encode_mapping(_mapping(fields))},
        "refs": {},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def current_schema(metadata: Metadata) -> Mapping[str, Any]:
    return _by_id(metadata["schemas"], "schema-id", metadata["current-schema-id"])


def takes_files(metadata: Metadata) -> bool:
    """Whether format, partitions and column types of the table allow readers to find the rows of our files."""
    types = {field["id"]: field["type"] for field in current_schema(metadata)["fields"]}
    return (
        metadata["format-version"] == 2
        and [spec["spec-id"] for spec in metadata["partition-specs"]] == [SPEC]
        and (types.get(1), types.get(2)) in (("date", "int"), ("date", "long"))
        and all(kind == "string" for number, kind in types.items() if FIRST_FIELD_ID <= number < AFTER_LAST_FIELD_ID)
    )


def with_columns(metadata: Metadata, columns: Collection[str], unnumbered: Collection[str] = ()) -> Metadata:
    """A document whose schema has all of these columns of the files. It only adds columns, each of type string.

    A column has the field id of its name, as in the files, even if another writer has renamed it. A column of
    ``unnumbered`` has an id that no file has: files with it, like all files without ids, are read by the name mapping.
    """
    schema = current_schema(metadata)
    mapping = _mapping_of(metadata)
    names = {item["field-id"]: item["names"] for item in mapping}
    numbered = {field_id(name): name for name in columns if name not in unnumbered}
    # A column that the ledger dropped is in no file, and leaves its id to another column with the same one. It is
    # recognised by its mapped name, because another writer can rename it and give its name to a new column.
    present = [
        item
        for item in schema["fields"]
        if (own := numbered.get(item["id"])) is None
        or own in (keys := names.get(item["id"], ()))
        or all(field_id(name) != item["id"] for name in keys)
    ]
    ids = {field["id"] for field in present}
    # Another writer may have dropped a column, or given its name to a column of another type. A column that it has
    # renamed is mapped by its first name, then by its new one, and a key with the new name gets another column.
    mapped = {
        name
        for field in present
        if field["type"] == "string"
        for name in names.get(field["id"], ())
        if name != field["name"] or name == names[field["id"]][0]
    }
    # Names in the files are in lower case, and most readers ignore case: Spark refuses x next to X.
    taken = {field["name"].lower() for field in present}
    last = int(metadata["last-column-id"])
    placed = {}
    for name in columns:
        if name in unnumbered:
            if name not in mapped:
                last += 1
                placed[name] = last
        elif (number := field_id(name)) not in ids or name not in names.get(number, ()):
            placed[name] = number
    if not placed:
        return metadata
    fields = []
    for name, number in placed.items():
        if number not in ids:
            shown = table_column(name, taken)
            taken.add(shown)
            fields.append({"id": number, "name": shown, "required": False, "type": "string"})
    # A column of another writer keeps only the values of other names. An entry of a column that it dropped may be left,
    # and readers refuse two entries with one id.
    numbers = {*placed.values()}
    kept = [
        {**item, "names": [name for name in item["names"] if name not in placed]}
        for item in mapping
        if item["field-id"] not in numbers
    ]
    mapping = [*kept, *({"field-id": number, "names": [name]} for name, number in placed.items())]
    number = max(schema["schema-id"] for schema in metadata["schemas"]) + 1
    return {
        **metadata,
        "schemas": [*metadata["schemas"], {**schema, "schema-id": number, "fields": [*present, *fields]}],
        "current-schema-id": number,
        "last-column-id": last,
        "properties": {**metadata["properties"], NAME_MAPPING: _encode_mapping(mapping)},
    }


def shown_columns(metadata: Metadata, columns: Iterable[str], unnumbered: Collection[str] = ()) -> dict[str, str]:
    """Maps each column of the files to its name in the table, which another writer may have changed.

    Columns that the table lacks are omitted. ``unnumbered`` is as in ``with_columns``.
    """
    mapped = {name: item["field-id"] for item in _mapping_of(metadata) for name in item["names"]}
    shown = {field["id"]: field["name"] for field in current_schema(metadata)["fields"]}
    ids = {name: mapped.get(name) if name in unnumbered else field_id(name) for name in columns}
    return {name: shown[number] for name, number in ids.items() if number in shown}


def table_column(name: str, taken: Collection[str] = ()) -> str:
    """The table's name for a column of the files, if other columns already have the names ``taken``."""
    while name in METADATA_COLUMNS or name in taken:
        name += "__"
    return name


def _mapping_of(metadata: Metadata) -> list[dict[str, Any]]:
    encoded = metadata["properties"].get(NAME_MAPPING)
    mapping: list[dict[str, Any]] = json.loads(encoded) if encoded else _mapping(current_schema(metadata)["fields"])
    return mapping


def _mapping(fields: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"field-id": field["id"], "names": [field["name"]]} for field in fields]


def _encode_mapping(mapping: list[dict[str, Any]]) -> str:
    return json.dumps(mapping, separators=(",", ":"), ensure_ascii=False)


def batch_of(metadata: Metadata) -> int:
    return int(metadata["properties"].get(BATCH, 0))


def head_of(metadata: Metadata) -> Mapping[str, Any] | None:
    main = metadata["refs"].get("main")
    if main is None:
        return None
    return _by_id(metadata["snapshots"], "snapshot-id", main["snapshot-id"])


def foreign_change(metadata: Metadata) -> str | None:
    """What another writer has done to rows since the last batch, as a sentence; None if nothing.

    A ``replace`` (compaction) changes no row. The snapshot of the last batch must be an ancestor of the current one.
    """
    mine = metadata["properties"].get(BATCH_SNAPSHOT)
    by_id = {item["snapshot-id"]: item for item in metadata["snapshots"]}
    snapshot, later = head_of(metadata), []
    while snapshot is not None and str(snapshot["snapshot-id"]) != mine:
        later.append(snapshot)
        snapshot = by_id.get(snapshot.get("parent-snapshot-id"))
    if snapshot is None and mine is not None:
        return f"its current snapshot is not a descendant of the last batch's, {mine}: it was rolled back or replaced"
    for item in later:
        if (operation := item["summary"].get("operation")) != "replace":
            return f"another writer has changed its rows: snapshot {item['snapshot-id']}, operation {operation}"
    return None


def oldest_batch(metadata: Metadata) -> int:
    """The lowest batch that any retained snapshot shows as its last one.

    A snapshot of another writer shows the rows of our nearest snapshot among its ancestors. If that one has expired, it
    is unknown what the snapshot shows, and the result is 0 until the snapshot expires as well.
    """
    by_id = {item["snapshot-id"]: item for item in metadata["snapshots"]}

    def shown(snapshot: Mapping[str, Any] | None) -> int:
        while snapshot is not None and BATCH not in snapshot["summary"]:
            snapshot = by_id.get(snapshot.get("parent-snapshot-id"))
        return 0 if snapshot is None else int(snapshot["summary"][BATCH])

    return min(map(shown, metadata["snapshots"]), default=batch_of(metadata))


def without_expired(metadata: Metadata, keep_from: int) -> Metadata:
    """The document without snapshots that were replaced before ``keep_from`` and that no reference names.

    A reference with a maximum age ends at this age. Other writers' statistics of a snapshot are dropped with it.
    ``keep_from`` is in milliseconds since the epoch. Only entries of the document are dropped; no file is deleted.
    """
    made_at = {item["snapshot-id"]: item["timestamp-ms"] for item in metadata["snapshots"]}
    refs = {
        name: item
        for name, item in metadata["refs"].items()
        if metadata["last-updated-ms"] - made_at.get(item["snapshot-id"], inf) <= (item.get("max-ref-age-ms") or inf)
    }
    named = {item["snapshot-id"] for item in refs.values()}
    # The log names a restored snapshot a second time.
    replaced_at = {
        item["snapshot-id"]: later["timestamp-ms"]
        for log in (metadata["snapshots"], metadata["snapshot-log"])
        for item, later in pairwise(log)
    }
    kept = [
        item
        for item in metadata["snapshots"]
        if replaced_at.get(item["snapshot-id"], inf) > keep_from or item["snapshot-id"] in named
    ]
    ids = {item["snapshot-id"] for item in kept}
    # Readers use the last entry before a time: an entry before a gap would show rows of another time.
    log = [*takewhile(lambda item: item["snapshot-id"] in ids, reversed(metadata["snapshot-log"]))]
    # A schema for each snapshot would make a document of megabytes. A snapshot whose columns are the first of
    # the current ones gets the current schema: its readers see the later columns as NULL.
    current = current_schema(metadata)
    extended = {
        item["schema-id"] for item in metadata["schemas"] if item["fields"] == current["fields"][: len(item["fields"])]
    }
    kept = [{**item, "schema-id": current["schema-id"]} if item.get("schema-id") in extended else item for item in kept]
    schemas = {item.get("schema-id") for item in kept} | {current["schema-id"]}
    return {
        **metadata,
        "refs": refs,
        "snapshots": kept,
        "snapshot-log": log[::-1],
        **{
            name: [item for item in metadata[name] if item["snapshot-id"] in ids]
            for name in STATISTICS
            if name in metadata
        },
        "schemas": [item for item in metadata["schemas"] if item["schema-id"] in schemas],
    }


def following(metadata: Metadata, location: str) -> Metadata:
    """The document with a log entry for its predecessor, which is at ``location``."""
    entry = {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": location}
    return {**metadata, "metadata-log": [*metadata["metadata-log"], entry][-MAX_PREVIOUS_VERSIONS:]}


def _by_id(items: Iterable[Mapping[str, Any]], name: str, number: int) -> Mapping[str, Any]:
    return next(item for item in items if item[name] == number)


CODEC = "deflate"
"""A codec that Python's standard library can read and write. Tables call it gzip, so that other writers use it too."""
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


def _entry(hour: str) -> dict[str, Any]:
    """The schema of a manifest's entries; ``hour`` is the type of this partition field."""
    days = _optional("date", {"type": "int", "logicalType": "date"}, 1000)
    data_file = _record(
        "r2",
        _required("content", "int", 134),
        _required("file_path", "string", 100),
        _required("file_format", "string", 101),
        _required("partition", _record("r102", days, _optional("hour", hour, 1001)), 102),
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
    return _record(
        "manifest_entry",
        _required("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _required("data_file", data_file, 2),
    )


_ENTRY = _entry("int")
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
ENTRY_SCHEMA, MANIFEST_SCHEMA = fastavro.parse_schema(_ENTRY), fastavro.parse_schema(_MANIFEST)
# Other writers write long after somebody changed the column to bigint. Both are read; all readers accept int for it.
_READ_ENTRY_SCHEMA = fastavro.parse_schema(_entry("long"))
_READ_MANIFEST_SCHEMA = fastavro.parse_schema(
    # Names that Iceberg's Java library, and so Athena and others, wrote before 1.4 (apache/iceberg#5338).
    {
        **_MANIFEST,
        "fields": [{**f, "aliases": [f["name"].replace("_files_", "_data_files_")]} for f in _MANIFEST["fields"]],
    }
)


def encode(schema: Any, records: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> bytes:  # noqa: ANN401
    """Encode a manifest or a manifest list. ``header`` has the specified keys, with values that JSON can represent."""
    target = io.BytesIO()
    header = {**header, "format-version": "2"}
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in header.items()}
    fastavro.writer(target, schema, records, codec=CODEC, metadata=metadata)
    return target.getvalue()


def decode_manifest(body: bytes) -> list[dict[str, Any]]:
    """All entries of a manifest by any writer, including entries of deleted files.

    Raises ``ValueError`` for a codec that tables do not prescribe.
    """
    entries = _decode(_READ_ENTRY_SCHEMA, body)
    for entry in entries:
        partition = entry["data_file"]["partition"]
        if isinstance(partition["date"], date):
            partition["date"] = (partition["date"] - EPOCH).days
    return entries


def decode_manifest_list(body: bytes) -> list[dict[str, Any]]:
    return _decode(_READ_MANIFEST_SCHEMA, body)


def _decode(schema: Any, body: bytes) -> list[dict[str, Any]]:  # noqa: ANN401
    return list(fastavro.reader(io.BytesIO(body), reader_schema=schema))  # type: ignore[arg-type]
