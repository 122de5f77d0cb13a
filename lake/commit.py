"""Commit documents: written once per attempt, before the commit point; publishing needs nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lake.documents import encode_document, put_document
from lake.errors import InvalidDocumentError, NewerDocumentError
from lake.ledger.manifest_row import CommitReference
from lake.partition import Partition

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

COMMIT_FORMAT = 1
"""Version of the document's format."""


@dataclass(frozen=True, slots=True)
class PendingObject:
    """A multipart upload under its final key that is not completed yet: no reader can see it."""

    bucket: str
    key: str
    upload_id: str
    parts: tuple[str, ...]
    """ETags of the parts in order, without quotes."""
    etag: str
    """ETag that the completed object will have, without quotes: the MD5 of its parts' MD5s, and ``-N`` for N parts
    (Amazon S3 User Guide, "Checking object integrity")."""
    size: int
    """Bytes."""
    rows: int
    """Rows of the Parquet footer, or records of a quarantine object."""


@dataclass(frozen=True, slots=True)
class SourceCount:
    """Outcome of one file of the manifest."""

    uri: str
    version: str
    """Version id, or the ETag after ``etag:``."""
    size: int
    """Bytes as stored."""
    lines: int
    rows: int
    blank_lines: int
    rejects: dict[str, int]
    """Rejected lines by reason."""
    first_reject: str | None
    """Reason and byte offset of the first rejected line; a sentence for people."""
    failed: str | None
    """Why the whole file could not be read: it is in the quarantine by reference, and all counts are 0."""


@dataclass(frozen=True, slots=True)
class CommitDocument:
    """The whole result of one attempt."""

    manifest: str
    generation: int
    attempt: int
    partition: Partition
    run: str
    """Job run id."""
    started_at: str
    """ISO 8601, UTC."""
    objects: tuple[PendingObject, ...]
    """Parquet files of the lake."""
    quarantine: tuple[PendingObject, ...]
    sources: tuple[SourceCount, ...]
    new_columns: tuple[str, ...]
    """Column names that the dataset did not have before the attempt."""
    task_milliseconds: int
    """Time of the attempt's tasks, summed over cores."""

    @property
    def rows(self) -> int:
        """Rows that it publishes."""
        return sum(item.rows for item in self.objects)


def encode_commit(document: CommitDocument) -> bytes:
    """The bytes of the document on S3."""
    return encode_document({"format": COMMIT_FORMAT, **asdict(document)})


def decode_commit(body: bytes) -> CommitDocument:
    """Inverse of ``encode_commit``. Raises ``NewerDocumentError``: another version has written the bytes."""
    try:
        data: dict[str, Any] = json.loads(body)
        if data.pop("format") != COMMIT_FORMAT:
            raise ValueError(f"its format is not {COMMIT_FORMAT}")
        data["partition"] = Partition(**data["partition"])
        for name in ("objects", "quarantine"):
            data[name] = tuple(PendingObject(**{**item, "parts": tuple(item["parts"])}) for item in data[name])
        data["sources"] = tuple(SourceCount(**item) for item in data["sources"])
        data["new_columns"] = tuple(data["new_columns"])
        return CommitDocument(**data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NewerDocumentError(
            f"this version cannot read the commit document ({error}): a newer version of hybrid-router will publish "
            "it, deploy it again"
        ) from error


def write_commit(s3: S3Client, control_bucket: str, key: str, document: CommitDocument) -> CommitReference:
    """Put the document under ``key``, which no other attempt uses; returns its reference for the ledger."""
    body = encode_commit(document)
    put_document(s3, control_bucket, key, body)
    return CommitReference(key, hashlib.sha256(body).hexdigest())


def read_commit(s3: S3Client, control_bucket: str, reference: CommitReference) -> CommitDocument:
    """Get the document that the ledger names.

    Raises
    ------
    InvalidDocumentError
        It does not exist, or its hash differs from the ledger's.
    NewerDocumentError
        It is the committed document, but this version cannot decode it.
    """
    try:
        body = s3.get_object(Bucket=control_bucket, Key=reference.key)["Body"].read()
    except s3.exceptions.NoSuchKey as error:
        raise InvalidDocumentError(f"the commit document {reference.key} is gone") from error
    if hashlib.sha256(body).hexdigest() != reference.sha256:
        raise InvalidDocumentError(f"the commit document {reference.key} was changed after it was committed")
    return decode_commit(body)
