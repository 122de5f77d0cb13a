"""What a generation has published, in the manifest's row: so that settle reads no document for each manifest."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class PublishedObjects:
    """The objects of one bucket: enough to see in a listing that one is missing, or was replaced."""

    count: int
    bytes: int
    digest: str
    """SHA-256 (hexadecimal) of key, size and ETag of each, in the order of the keys."""


@dataclass(frozen=True, slots=True)
class PublishedTotals:
    """Counts of one generation; the result document has them for each file."""

    rows: int
    rejects: dict[str, int]
    """Quarantined lines by reason; there are as many reasons as ``ndjson_arrow`` lists."""
    failed_files: int
    """Files that could not be read as a whole."""
    lake: PublishedObjects
    quarantine: PublishedObjects
    task_milliseconds: int
    """Time of the attempt's tasks, summed over cores."""


class ObjectsDigest:
    """Computes ``PublishedObjects`` from objects that are added in the order of their keys."""

    __slots__ = ("_bytes", "_count", "_hash")

    def __init__(self) -> None:
        self._count = self._bytes = 0
        self._hash = hashlib.sha256()

    def add(self, key: str, size: int, etag: str) -> None:
        """Add one object: size in bytes, ETag without quotes."""
        self._count += 1
        self._bytes += size
        self._hash.update(f"{key}\0{size}\0{etag}\n".encode())

    def result(self) -> PublishedObjects:
        """All objects added so far."""
        return PublishedObjects(self._count, self._bytes, self._hash.hexdigest())


def digest_objects(objects: Iterable[tuple[str, int, str]]) -> PublishedObjects:
    """The digest of (key, bytes, ETag) in any order."""
    digest = ObjectsDigest()
    for item in sorted(objects):
        digest.add(*item)
    return digest.result()


NO_OBJECTS = digest_objects(())


def totals_attributes(totals: PublishedTotals) -> dict[str, Any]:
    """The row's attribute ``published_totals``; buckets without objects are left out."""
    objects = {"lake": totals.lake, "quarantine": totals.quarantine}
    return {
        "rows": totals.rows,
        "rejects": totals.rejects,
        "failed_files": totals.failed_files,
        "task_milliseconds": totals.task_milliseconds,
        **{name: asdict(found) for name, found in objects.items() if found.count},
    }


def totals_of_attributes(item: dict[str, Any]) -> PublishedTotals:
    """Inverse of ``totals_attributes``."""
    lake, quarantine = (_objects_of(item[name]) if name in item else NO_OBJECTS for name in ("lake", "quarantine"))
    return PublishedTotals(
        item["rows"], item["rejects"], item["failed_files"], lake, quarantine, item["task_milliseconds"]
    )


def _objects_of(item: dict[str, Any]) -> PublishedObjects:
    return PublishedObjects(item["count"], item["bytes"], item["digest"])
