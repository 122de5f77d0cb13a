"""S3 buckets in memory; a night's documents, and the listing of its first hour, are made when they are read."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from datetime import datetime
from xml.sax.saxutils import escape

from bench.control_plane.night import RESOURCES, Night
from lake.documents import encode_body
from lake.layout import MANIFESTS, PARTS
from lake.manifest import ObjectVersion

PAGE_KEYS = 1000
"""S3's limit on the keys of one page of a listing."""


class Buckets:
    """Objects by bucket and key."""

    def __init__(self, night: Night, first_hour: Iterable[ObjectVersion]) -> None:
        self._night = night
        self._objects: dict[tuple[str, str], bytes] = {}
        self._versions = sorted(first_hour, key=lambda file: file.key)
        self._keys = [file.key for file in self._versions]

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Store an object."""
        self._objects[bucket, key] = body

    def delete(self, bucket: str, key: str) -> None:
        """Remove it, if it exists."""
        self._objects.pop((bucket, key), None)

    def get(self, bucket: str, key: str) -> bytes | None:
        """Its bytes; None: there is no such key."""
        body = self._objects.get((bucket, key))
        if body is not None or bucket != RESOURCES.control_bucket or not key.startswith((MANIFESTS, PARTS)):
            return body
        number = self._night.number_of(key.rsplit("/", 1)[-1].removesuffix(".json"))
        if key.startswith(PARTS):
            return self._night.part(number)[1]
        return encode_body(self._night.manifest(number))

    def list_objects(self, bucket: str, query: Mapping[str, str]) -> str:
        """ListObjectsV2 as XML."""
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        keys = sorted(key for owner, key in self._objects if owner == bucket and key.startswith(prefix) and key > after)
        page = keys[: int(query.get("max-keys", PAGE_KEYS))]
        items = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self._objects[bucket, key])}</Size></Contents>"
            for key in page
        )
        more = str(len(page) < len(keys)).lower()
        counts = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{more}</IsTruncated>"
        return f"<ListBucketResult>{counts}{items}</ListBucketResult>"

    def list_versions(self, query: Mapping[str, str]) -> str:
        """ListObjectVersions of the input bucket as XML; each key has one version."""
        prefix, marker = query.get("prefix", ""), query.get("key-marker", "")
        if query.get("delimiter"):
            folders = (f"{name}/" for name in self._night.dataset_names())
            items = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in folders)
            return f"<ListVersionsResult><IsTruncated>false</IsTruncated>{items}</ListVersionsResult>"
        first = bisect.bisect_right(self._keys, max(marker, prefix))
        end = bisect.bisect_left(self._keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(self._keys)
        page = self._versions[first : min(first + PAGE_KEYS, end)]
        items = "".join(map(_version, page))
        if first + PAGE_KEYS >= end:
            return f"<ListVersionsResult><IsTruncated>false</IsTruncated>{items}</ListVersionsResult>"
        last = page[-1]
        markers = (
            f"<NextKeyMarker>{escape(last.key)}</NextKeyMarker>"
            f"<NextVersionIdMarker>{last.version_id}</NextVersionIdMarker>"
        )
        return f"<ListVersionsResult><IsTruncated>true</IsTruncated>{markers}{items}</ListVersionsResult>"


def _version(file: ObjectVersion) -> str:
    modified = f"{datetime.fromisoformat(file.arrived_at):%Y-%m-%dT%H:%M:%S.000Z}"
    return (
        f"<Version><Key>{escape(file.key)}</Key><VersionId>{file.version_id}</VersionId><IsLatest>true</IsLatest>"
        f"<LastModified>{modified}</LastModified><ETag>&quot;{file.etag}&quot;</ETag><Size>{file.size}</Size></Version>"
    )
