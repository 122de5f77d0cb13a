"""Arrival rows: one per object version, each naming the manifest that owns it. One conditional put per file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.ledger.table import Key, RefusedError, Where
from lake.manifest import Lane, ObjectVersion
from lake.partition import Partition

if TYPE_CHECKING:
    from lake.ledger.table import Table

IGNORED = "IGNORED"


@dataclass(frozen=True, slots=True)
class ArrivalRow:
    """What the ledger knows of one object version."""

    file: ObjectVersion
    manifest: str | None
    """Id of the owner; None: the arrival is IGNORED."""
    partition: Partition | None
    lane: Lane | None
    reason: str
    """Why this lane, or why it is ignored; a sentence for people."""
    recorded_at: str
    """ISO 8601, UTC: when the owner took it."""


def arrival_key(bucket: str, key: str, version: str) -> Key:
    """Hashed: an S3 key can be as long as a sort key may be."""
    digest = hashlib.sha256(f"{bucket}\0{key}".encode()).hexdigest()
    return Key(f"arrival#{digest}", version)


class Arrivals:
    """Reads and writes arrival rows."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def put(self, row: ArrivalRow) -> ArrivalRow:
        """Record the arrival if it is new; the row that stands in the ledger afterwards.

        The answer of a put may be lost and the put repeated, so a refusal is settled by a consistent read:
        the caller owns the arrival when the row that comes back names its own manifest.
        """
        key = arrival_key(row.file.bucket, row.file.key, row.file.version)
        try:
            self._table.put(key, _attributes(row), [Where("pk", "missing")])
        except RefusedError:
            standing = self._table.get(key)
            if standing is None:
                raise
            return _row(standing)
        return row

    def adopt(self, standing: ArrivalRow, row: ArrivalRow) -> ArrivalRow:
        """Take over an arrival whose owner was put ABANDONED; the row that stands afterwards."""
        key = arrival_key(row.file.bucket, row.file.key, row.file.version)
        changes = {
            "manifest": row.manifest,
            "lane": row.lane,
            "reason": row.reason,
            "recorded_at": row.recorded_at,
        }
        try:
            self._table.update(key, assign=changes, where=[Where("manifest", "=", standing.manifest)])
        except RefusedError:
            after = self._table.get(key)
            if after is None:
                raise
            return _row(after)
        return row

    def get(self, file: ObjectVersion) -> ArrivalRow | None:
        """The row of one object version."""
        item = self._table.get(arrival_key(file.bucket, file.key, file.version))
        return None if item is None else _row(item)

    def versions(self, bucket: str, key: str) -> list[ArrivalRow]:
        """All recorded versions of a key."""
        return [_row(item) for item in self._table.query(arrival_key(bucket, key, "").pk)]


def _attributes(row: ArrivalRow) -> dict[str, Any]:
    file = row.file
    return {
        "bucket": file.bucket,
        "key": file.key,
        "etag": file.etag,
        "size": file.size,
        "arrived_at": file.arrived_at,
        "version_id": file.version_id,
        "manifest": row.manifest,
        "partition": None if row.partition is None else str(row.partition),
        "lane": row.lane,
        "state": IGNORED if row.manifest is None else None,
        "reason": row.reason,
        "recorded_at": row.recorded_at,
    }


def _row(item: dict[str, Any]) -> ArrivalRow:
    file = ObjectVersion(
        item["bucket"], item["key"], item["etag"], item["size"], item["arrived_at"], item.get("version_id")
    )
    partition = item.get("partition")
    lane = item.get("lane")
    return ArrivalRow(
        file,
        item.get("manifest"),
        Partition.parse(partition) if partition else None,
        Lane(lane) if lane else None,
        item["reason"],
        item["recorded_at"],
    )
