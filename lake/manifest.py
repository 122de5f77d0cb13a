"""Manifests: lists of files, each the unit of ownership, conversion, retry and audit. JSON documents on S3.

A partition is one hour of one dataset, fixed when an arrival is recorded first.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from lake.documents import decode_body, encode_body, listed
from lake.errors import ForeignBucketError
from lake.time import iso_utc

UNVERSIONED = "null"
"""Version id that S3 gives to objects written while the bucket has no versions."""

_COMPRESSED = (".gz", ".bz2", ".zst")
INFLATED_RATIO = 8
"""Assumed: bytes of NDJSON for each stored byte of a compressed file."""


class Lane(StrEnum):
    STREAM = "stream"
    BATCH = "batch"


@listed
@dataclass(frozen=True, slots=True, order=True)
class ObjectVersion:
    """A version of an object, identified by version id, or by ETag where the bucket has no versions."""

    bucket: str
    key: str
    etag: str
    """Without quotes."""
    size: int
    arrived_at: str
    """ISO 8601, UTC: time of the event, or ``LastModified`` where a listing found the object."""
    version_id: str | None = None

    @classmethod
    def of(
        cls, bucket: str, key: str, etag: str, size: int, instant: datetime, version_id: str | None
    ) -> ObjectVersion:
        """An arrival as an event or a listing gives it, normalised: both give equal objects for the same version.

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
    """Events with equal identities announce the same arrival, even when their times differ."""

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


def manifest_sha256(manifest: Manifest) -> str:
    """SHA-256 (hexadecimal) of the document: the ledger row binds the document by it."""
    return hashlib.sha256(encode_body(manifest)).hexdigest()


def decode_manifest(body: bytes, allowed_buckets: Collection[str]) -> Manifest:
    """The manifest of a document that the ledger vouches for. Raises ``UnusableDocumentError``."""
    manifest = decode_body(Manifest, body, "manifest")
    check_buckets((file.bucket for file in manifest.files), allowed_buckets, f"manifest {manifest.id}")
    return manifest


def check_buckets(buckets: Iterable[str], allowed_buckets: Collection[str], name: str) -> None:
    """Raise ``ForeignBucketError`` if one of the buckets that a document names is of another deployment."""
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
    """Whether the key ends as compressed files do: a forecast knows no content, by which the reader decides."""
    return key.lower().endswith(_COMPRESSED)
