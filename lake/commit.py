"""Commit documents: written once per attempt before the commit point; all that publishing needs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lake.documents import encode_document, put_document
from lake.errors import InvalidDocumentError
from lake.ledger.manifest_row import Document
from lake.partition import Partition

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FORMAT = 1


@dataclass(frozen=True, slots=True)
class PendingObject:
    """A multipart upload on its final key that is not completed yet: nobody can see it."""

    bucket: str
    key: str
    upload_id: str
    parts: tuple[str, ...]
    """ETags of the parts, without quotes, in order."""
    etag: str
    """ETag the object will have: md5 of the parts' md5s, "-N"; without quotes."""
    size: int
    """Bytes."""
    rows: int
    """Rows of the Parquet footer, or records of a quarantine object."""


@dataclass(frozen=True, slots=True)
class SourceCount:
    """What became of one file of the manifest."""

    uri: str
    version: str
    size: int
    """Bytes as stored (compressed where the file is)."""
    lines: int
    rows: int
    blank_lines: int
    rejects: dict[str, int]
    """Rejected lines by reason."""
    first_reject: str | None
    """First rejected line: reason and byte offset, a sentence for people."""
    failed: str | None
    """Why the file as a whole could not be read; then it is in the quarantine by reference and all counts are 0."""


@dataclass(frozen=True, slots=True)
class CommitDocument:
    """One attempt's whole result."""

    manifest: str
    generation: int
    attempt: int
    partition: Partition
    run: str
    """Job run id."""
    started_at: str
    """ISO 8601, UTC."""
    objects: tuple[PendingObject, ...]
    quarantine: tuple[PendingObject, ...]
    sources: tuple[SourceCount, ...]
    new_columns: tuple[str, ...]
    task_milliseconds: int
    """Time of its tasks, summed over cores."""

    @property
    def rows(self) -> int:
        """Rows published."""
        return sum(item.rows for item in self.objects)


def to_bytes(document: CommitDocument) -> bytes:
    """The document as it stands on S3."""
    return encode_document({"format": FORMAT, **asdict(document)})


def from_bytes(body: bytes) -> CommitDocument:
    """Read a commit document back; raises ``InvalidDocumentError``."""
    try:
        data: dict[str, Any] = json.loads(body)
        if data.pop("format") != FORMAT:
            raise InvalidDocumentError("unknown commit document format: deploy a matching version")
        data["partition"] = Partition(**data["partition"])
        for name in ("objects", "quarantine"):
            data[name] = tuple(PendingObject(**{**item, "parts": tuple(item["parts"])}) for item in data[name])
        data["sources"] = tuple(SourceCount(**item) for item in data["sources"])
        data["new_columns"] = tuple(data["new_columns"])
        return CommitDocument(**data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDocumentError(f"not a commit document ({error}): it was not written by this system") from error


def write_commit(s3: S3Client, control_bucket: str, key: str, document: CommitDocument) -> Document:
    """Put the document under a key of its own and name it by key and hash."""
    body = to_bytes(document)
    put_document(s3, control_bucket, key, body)
    return Document(key, hashlib.sha256(body).hexdigest())


def read_commit(s3: S3Client, control_bucket: str, document: Document) -> CommitDocument:
    """Get the document that the ledger names.

    Raises
    ------
    InvalidDocumentError
        When it is gone or its hash is not the ledger's.
    """
    try:
        body = s3.get_object(Bucket=control_bucket, Key=document.key)["Body"].read()
    except s3.exceptions.NoSuchKey as error:
        raise InvalidDocumentError(f"the commit document {document.key} is gone: force the manifest") from error
    if hashlib.sha256(body).hexdigest() != document.sha256:
        raise InvalidDocumentError(f"the commit document {document.key} was changed after it was committed")
    return from_bytes(body)
