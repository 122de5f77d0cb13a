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
    task_milliseconds: int = 0
    """Time of the attempt's tasks, summed over cores; 0: a version that did not record it has published it."""


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


def totals_attributes(totals: PublishedTotals, generation: int) -> dict[str, Any]:
    """The row's attribute ``published_totals``; buckets without objects are left out.

    It names its generation: a version that does not know the attribute leaves it behind when it publishes the next one.
    """
    objects = {"lake": totals.lake, "quarantine": totals.quarantine}
    return {
        "generation": generation,
        "rows": totals.rows,
        "rejects": totals.rejects,
        "failed_files": totals.failed_files,
        "task_milliseconds": totals.task_milliseconds,
        **{name: asdict(found) for name, found in objects.items() if found.count},
    }


def totals_of_attributes(item: dict[str, Any] | None, generation: int) -> PublishedTotals | None:
    """Inverse of ``totals_attributes``; None: they are missing, or of another generation."""
    if item is None or item["generation"] != generation:
        return None
    lake, quarantine = (_objects_of(item[name]) if name in item else NO_OBJECTS for name in ("lake", "quarantine"))
    counts = (item["rows"], item["rejects"], item["failed_files"])
    return PublishedTotals(*counts, lake, quarantine, item.get("task_milliseconds", 0))


def _objects_of(item: dict[str, Any]) -> PublishedObjects:
    """By name: what a newer version has added is left alone."""
    return PublishedObjects(item["count"], item["bytes"], item["digest"])
