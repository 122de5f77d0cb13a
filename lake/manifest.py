"""Manifests: lists of files that are owned, converted, retried and audited together. JSON documents on S3.

A partition is one hour of one dataset, fixed when an arrival is first recorded.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from lake.documents import decode_body, listed
from lake.errors import ForeignBucketError
from lake.time import iso_utc

UNVERSIONED = "null"
"""Version id that S3 gives to an object written while the bucket keeps no versions."""

_COMPRESSED = (".gz", ".bz2", ".zst")
INFLATED_RATIO = 8
"""Assumed: bytes of NDJSON for each stored byte of a compressed file."""


class Lane(StrEnum):
    STREAM = "stream"
    BATCH = "batch"


@listed
@dataclass(frozen=True, slots=True, order=True)
class ObjectVersion:
    """A version of an object, identified by its version id, or by its ETag if the bucket keeps no versions."""

    bucket: str
    key: str
    etag: str
    """Without quotes."""
    size: int
    arrived_at: str
    """ISO 8601, UTC: the time of the event, or ``LastModified`` if a listing found the object."""
    version_id: str | None = None

    @classmethod
    def of(
        cls, bucket: str, key: str, etag: str, size: int, instant: datetime, version_id: str | None
    ) -> ObjectVersion:
        """The normalised arrival: an event and a listing give equal objects for the same version.

        ``etag`` may have quotes; ``instant`` is aware; ``version_id`` may be empty or ``null``.
        """
        pinned = None if version_id in (None, "", UNVERSIONED) else version_id
        return cls(bucket, key, etag.strip('"'), size, iso_utc(instant), pinned)

    @property
    def version(self) -> str:
        """The version id, or the ETag after ``etag:``; differs between versions of a key."""
        return self.version_id or f"etag:{self.etag}"

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


class Identity(NamedTuple):
    """Identity of an arrival: events with equal identities announce the same arrival, even if their times differ."""

    bucket: str
    key: str
    version: str

    @classmethod
    def of(cls, file: ObjectVersion) -> Identity:
        return cls(file.bucket, file.key, file.version)


@dataclass(frozen=True, slots=True)
class Manifest:
    id: str
    lane: Lane
    partition: Partition
    created_at: str
    files: tuple[ObjectVersion, ...]
    urgent: bool = False

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def compressed_bytes(self) -> int:
        return sum(file.size for file in self.files if has_compressed_name(file.key))


def new_manifest_id(now: datetime) -> str:
    """A new id, never derived from content: ``YYYYMMDDTHHMMSS`` of ``now`` (UTC) and 80 random bits."""
    return f"{now:%Y%m%dT%H%M%S}{secrets.token_hex(10)}"


def is_manifest_id(text: str) -> bool:
    return re.fullmatch(r"\d{8}T\d{6}[0-9a-f]{20}", text, re.ASCII) is not None


def decode_manifest(body: bytes, allowed_buckets: Collection[str]) -> Manifest:
    """Decode a manifest whose bytes the ledger has confirmed. Raises ``UnusableDocumentError``."""
    manifest = decode_body(Manifest, body, "manifest")
    check_buckets((file.bucket for file in manifest.files), allowed_buckets, f"manifest {manifest.id}")
    return manifest


def check_buckets(buckets: Iterable[str], allowed_buckets: Collection[str], name: str) -> None:
    """Raise ``ForeignBucketError`` if a document names a bucket outside ``allowed_buckets``."""
    if foreign := set(buckets) - set(allowed_buckets):
        raise ForeignBucketError(
            f"{name} names the bucket {min(foreign)!r}, which is not an input of this deployment: "
            "set input.bucket to it or remove it"
        )


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    dataset: str
    date: str
    """``YYYY-MM-DD``, UTC."""
    hour: int
    """0 to 23, UTC."""

    @classmethod
    def of(cls, dataset: str, instant: datetime) -> Partition:
        utc = instant.astimezone(UTC)
        return cls(dataset, utc.date().isoformat(), utc.hour)

    @classmethod
    def parse(cls, text: str) -> Partition:
        """Inverse of ``str()``: ``dataset#YYYY-MM-DDTHH``. Raises ``ValueError``."""
        dataset, _, stamp = text.rpartition("#")
        date, _, hour = stamp.partition("T")
        return cls(dataset, date, int(hour))

    def __str__(self) -> str:
        return f"{self.dataset}#{self.stamp}"

    @property
    def stamp(self) -> str:
        """``YYYY-MM-DDTHH``, UTC; sorts by time."""
        return f"{self.date}T{self.hour:02d}"


def has_compressed_name(key: str) -> bool:
    """Whether the key has a suffix of compressed files. Only forecasts use it; the reader decides by content."""
    return key.lower().endswith(_COMPRESSED)
