"""Writes the next snapshot of a table: a manifest of new files, changed manifests, a manifest list, and the document.

It only writes files under names that were never used before. The caller swaps the catalog's pointer.
"""

import re
import struct
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lake.cut import cut
from lake.documents import encode_document
from lake.errors import InvalidDocumentError, TransientError
from router.iceberg.metadata import (
    BATCH,
    BATCH_SNAPSHOT,
    ENTRY_SCHEMA,
    MANIFEST_SCHEMA,
    PARTITION_FIELDS,
    SPEC,
    TAG,
    DataFile,
    Metadata,
    current_schema,
    decode_manifest,
    decode_manifest_list,
    encode,
    head_of,
    with_columns,
    without_expired,
)

EXISTING, ADDED, DELETED = 0, 1, 2
DATA = 0
"""Content of a manifest with data files; other writers also have manifests with delete files (1)."""
MERGE_AT = 100
"""Number of small manifests above which a commit merges them."""
MAX_MERGED_FILES = 10_000
"""Maximum number of files in a merged manifest. It bounds the reads, writes and memory of a commit."""


class Files(Protocol):
    """Access to the files of the table's metadata by their URIs."""

    def read(self, path: str) -> bytes:
        """The bytes of a file."""

    def write(self, path: str, body: bytes) -> None:
        """Write a file whose name was never used before."""


class MissingFilesError(TransientError):
    """Files to be removed are not in the table, because another writer has compacted them."""


@dataclass(frozen=True, slots=True)
class Batch:
    number: int
    add: Sequence[DataFile]
    remove: Sequence[DataFile] = ()
    """Files to remove; each must be in the table."""
    clear: Collection[tuple[int, int]] = ()
    """Partitions that lose all their current files."""
    columns: Sequence[str] = ()
    """Columns of the dataset's files."""
    unnumbered: Collection[str] = ()
    """Columns without a field id."""


@dataclass(slots=True)
class _Snapshot:
    """The snapshot that is being written."""

    metadata: Metadata
    files: Files
    id: int = field(default_factory=lambda: uuid.uuid4().int >> 65)

    @property
    def sequence(self) -> int:
        return int(self.metadata["last-sequence-number"]) + 1

    def write(self, name: str, body: bytes) -> str:
        path = f"{self.metadata['location']}/metadata/{name}-{uuid.uuid4()}.avro"
        self.files.write(path, body)
        return path

    def write_manifest(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Write a manifest; returns its row in the manifest list."""
        schema = current_schema(self.metadata)
        header = {
            "schema": schema,
            "schema-id": str(schema["schema-id"]),
            "partition-spec": PARTITION_FIELDS,
            "partition-spec-id": str(SPEC),
            "content": "data",
        }
        body = encode(ENTRY_SCHEMA, entries, header)
        path = self.write("manifest", body)
        known = [entry.get("sequence_number") for entry in entries if entry["status"] != DELETED]
        row = {
            "manifest_path": path,
            "manifest_length": len(body),
            "partition_spec_id": SPEC,
            "content": DATA,
            "sequence_number": self.sequence,
            "min_sequence_number": min([self.sequence, *(number for number in known if number is not None)]),
            "added_snapshot_id": self.id,
            "partitions": [_summary(entries, name) for name in ("date", "hour")],
        }
        for name, status in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
            rows = [entry["data_file"]["record_count"] for entry in entries if entry["status"] == status]
            row |= {f"{name}_files_count": len(rows), f"{name}_rows_count": sum(rows)}
        return row


def commit_batch(metadata: Metadata, files: Files, batch: Batch, now: int, keep_from: int) -> Metadata:
    """Write the files of the next snapshot; returns the document that makes it the current one.

    ``now`` is in milliseconds since the epoch. Snapshots that were replaced before ``keep_from`` are dropped from the
    document. Raises ``MissingFilesError`` if a file of ``batch.remove`` is not in the table.
    """
    metadata = with_columns(metadata, batch.columns, batch.unnumbered)
    snapshot = _Snapshot(metadata, files)
    kept, removed = _without_removed(snapshot, batch)
    if batch.add:
        kept.insert(0, snapshot.write_manifest([_added(item) for item in batch.add]))
    kept = _merged(snapshot, kept)
    head = head_of(metadata)
    header = {
        "snapshot-id": str(snapshot.id),
        "parent-snapshot-id": str(head["snapshot-id"]) if head else "null",
        "sequence-number": str(snapshot.sequence),
    }
    path = snapshot.write(f"snap-{snapshot.id}", encode(MANIFEST_SCHEMA, kept, header))
    data = [item for item in kept if item["content"] == DATA]
    entry = {
        "snapshot-id": snapshot.id,
        "sequence-number": snapshot.sequence,
        # Readers refuse a table whose snapshots are not in order of time.
        "timestamp-ms": max(now, int(metadata["last-updated-ms"])),
        "manifest-list": path,
        # Optional in Iceberg, but DuckDB crashes when it reads an earlier snapshot without it.
        "schema-id": metadata["current-schema-id"],
        "summary": {
            "operation": "overwrite" if removed else "append",
            BATCH: str(batch.number),
            "added-data-files": str(len(batch.add)),
            "added-records": str(sum(item.rows for item in batch.add)),
            "deleted-data-files": str(removed),
            "total-data-files": str(sum(map(live_files, data))),
            "total-records": str(sum(item["added_rows_count"] + item["existing_rows_count"] for item in data)),
        },
        **({"parent-snapshot-id": head["snapshot-id"]} if head else {}),
    }
    log = {"snapshot-id": snapshot.id, "timestamp-ms": entry["timestamp-ms"]}
    document = {
        **metadata,
        "last-sequence-number": snapshot.sequence,
        "last-updated-ms": entry["timestamp-ms"],
        "current-snapshot-id": snapshot.id,
        "refs": {
            **metadata["refs"],
            "main": {"snapshot-id": snapshot.id, "type": "branch"},
            TAG: {"snapshot-id": snapshot.id, "type": "tag"},
        },
        "snapshots": [*metadata["snapshots"], entry],
        "snapshot-log": [*metadata["snapshot-log"], log],
        "properties": {**metadata["properties"], BATCH: str(batch.number), BATCH_SNAPSHOT: str(snapshot.id)},
    }
    return without_expired(document, keep_from)


def write_document(metadata: Metadata, files: Files) -> str:
    """Write a metadata document; returns its URI.

    Its number follows its predecessor's, also another writer's: readers without a catalog take the last name.
    """
    log = metadata["metadata-log"]
    before = re.search(r"/(\d+)-[^/]*$", log[-1]["metadata-file"]) if log else None
    number = int(before[1]) + 1 if before else 0
    path = f"{metadata['location']}/metadata/{number:05d}-{uuid.uuid4()}.metadata.json"
    files.write(path, encode_document(metadata))
    return path


def manifests_of(metadata: Metadata, files: Files, snapshot: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The manifests of a snapshot; None stands for the current one."""
    snapshot = snapshot or head_of(metadata)
    return [] if snapshot is None else _read_avro(files, snapshot["manifest-list"], decode_manifest_list)


def _read_avro(files: Files, path: str, decode: Callable[[bytes], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The records of a file. Raises ``InvalidDocumentError`` if it is damaged."""
    body = files.read(path)
    try:
        return decode(body)
    except MemoryError:
        raise
    except Exception as error:  # The decoders have no common error for damage.
        raise InvalidDocumentError(f"{path} cannot be read ({type(error).__name__}: {error}): restore it") from error


def live_files(manifest: Mapping[str, Any]) -> int:
    return int(manifest["added_files_count"]) + int(manifest["existing_files_count"])


def live_entries(manifest: Mapping[str, Any], files: Files) -> list[dict[str, Any]]:
    """The entries of a manifest whose files are in the table, with the values that they inherit from the manifest."""
    found = []
    for entry in _read_avro(files, manifest["manifest_path"], decode_manifest):
        if entry["status"] == DELETED:
            continue
        if entry["snapshot_id"] is None:
            entry["snapshot_id"] = manifest["added_snapshot_id"]
        for name in ("sequence_number", "file_sequence_number"):
            if entry[name] is None:
                entry[name] = manifest["sequence_number"] if entry["status"] == ADDED else 0
        found.append(entry)
    return found


def _hour(entry: Mapping[str, Any]) -> tuple[int, int]:
    partition = entry["data_file"]["partition"]
    return partition["date"], partition["hour"]


def _without_removed(snapshot: _Snapshot, batch: Batch) -> tuple[list[dict[str, Any]], int]:
    """The manifests without the removed files, and the number of these files."""
    kept, found, number = [], set(), 0
    paths = {item.path for item in batch.remove}
    hours = {*batch.clear, *(item.hour for item in batch.remove)}
    for manifest in manifests_of(snapshot.metadata, snapshot.files):
        if not manifest["added_files_count"] and not manifest["existing_files_count"]:
            continue
        # Delete files of other writers have no effect on files that are gone.
        if manifest["content"] != DATA or not _may_have(manifest, hours):
            kept.append(manifest)
            continue
        entries = live_entries(manifest, snapshot.files)
        gone = [e["data_file"]["file_path"] in paths or _hour(e) in batch.clear for e in entries]
        if not any(gone):
            kept.append(manifest)
            continue
        found |= {entry["data_file"]["file_path"] for entry, goes in zip(entries, gone, strict=True) if goes}
        number += sum(gone)
        rest = [
            {**entry, "status": DELETED, "snapshot_id": snapshot.id} if goes else {**entry, "status": EXISTING}
            for entry, goes in zip(entries, gone, strict=True)
        ]
        kept.append(snapshot.write_manifest(rest))
    if missing := sorted(paths - found):
        raise MissingFilesError(f"{len(missing)} files to remove are not in the table (first: {missing[0]})")
    return kept, number


def _merged(snapshot: _Snapshot, manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The manifests after small ones were merged, if there are many; neighbours, often of one hour, are merged.

    A manifest that is half full is not merged again, so each entry is rewritten a limited number of times. A manifest
    in which this snapshot deletes files is kept until the next commit, because readers of changes look for it.
    """
    small = [
        item
        for item in manifests
        if item["content"] == DATA
        and live_files(item) < MAX_MERGED_FILES // 2
        and not (item["deleted_files_count"] and item["added_snapshot_id"] == snapshot.id)
    ]
    if len(small) <= MERGE_AT:
        return manifests
    merged, replaced = [], set()
    for group in cut(small, lambda item: (live_files(item), 0), (MAX_MERGED_FILES, 0)):
        if len(group) > 1:
            entries = [
                _carried(snapshot, item, entry) for item in group for entry in live_entries(item, snapshot.files)
            ]
            merged.append(snapshot.write_manifest(entries))
            replaced |= {item["manifest_path"] for item in group}
    return [*merged, *(item for item in manifests if item["manifest_path"] not in replaced)]


def _carried(snapshot: _Snapshot, manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    if manifest["added_snapshot_id"] == snapshot.id and entry["status"] == ADDED:
        return {**entry, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    return {**entry, "status": EXISTING}


def _added(item: DataFile) -> dict[str, Any]:
    """The entry of a new file. It inherits from its manifest what is missing here."""
    date, hour = item.hour
    data_file = {
        "content": DATA,
        "file_path": item.path,
        "file_format": "PARQUET",
        "partition": {"date": date, "hour": hour},
        "record_count": item.rows,
        "file_size_in_bytes": item.size,
        # Queries of Trino's $entries table fail without it.
        "sort_order_id": 0,
    }
    return {"status": ADDED, "data_file": data_file}


def _summary(entries: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Bounds of a partition field in a manifest."""
    values = [entry["data_file"]["partition"][name] for entry in entries]
    bounds = {"lower_bound": struct.pack("<i", min(values)), "upper_bound": struct.pack("<i", max(values))}
    return {"contains_null": False, "contains_nan": False, **bounds}


def _may_have(manifest: Mapping[str, Any], hours: Collection[tuple[int, int]]) -> bool:
    """Whether a manifest can have files of these partitions, by its bounds."""
    if not hours:
        return False
    summaries = manifest["partitions"] or ()
    if len(summaries) != len(PARTITION_FIELDS) or any(item["lower_bound"] is None for item in summaries):
        return True
    (first, last), (low, high) = (
        tuple(int.from_bytes(item[f"{side}_bound"], "little", signed=True) for side in ("lower", "upper"))
        for item in summaries
    )
    return any(first <= date <= last and low <= hour <= high for date, hour in hours)
