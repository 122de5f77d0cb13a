"""Commit documents: written once per attempt, before the commit point; publishing needs nothing else.

Result documents: what a published generation has read and written, for people, settle and proofs.

The checksum of an uploaded object is CRC32, because zlib is in every Python and computes it at the speed of memory,
and because S3 verifies it and keeps it for the whole object also after a multipart upload, as the type FULL_OBJECT
(Amazon S3 User Guide, "Checking object integrity for data uploads in Amazon S3"). An ETag is an MD5 only in a bucket
that no KMS key encrypts.
"""

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Final

from lake.aws_types import S3Client
from lake.documents import (
    decode_body,
    decode_found,
    encode,
    encode_body,
    encode_document,
    find_document,
    get_bound_document,
    gone,
    put_document,
)
from lake.layout import lake_prefix, result_key
from lake.ledger.manifest_row import CommitReference, PublishedObjects, PublishedTotals, digest_objects
from lake.manifest import Partition
from lake.settings import ConvertSettings
from lake.time import iso_utc


@dataclass(frozen=True, slots=True)
class PendingObject:
    """A multipart upload of one part under its final key that is not completed yet: no reader can see it."""

    bucket: str
    key: str
    upload_id: str
    etag: str
    """ETag of its part, without quotes; it is not a checksum of the content."""
    checksum: str
    size: int
    rows: int
    """Rows of the Parquet footer, or records of a quarantine object."""


@dataclass(frozen=True, slots=True)
class SourceCount:
    uri: str
    version: str
    """Version id, or the ETag after ``etag:``."""
    size: int
    lines: int
    rows: int
    blank_lines: int
    rejects: dict[str, int]
    first_reject: str | None
    """Reason and byte offset of the first rejected line, as a sentence for people."""
    failed: str | None
    """Why the file could not be read: it is quarantined by reference, and all counts are 0. None if it was read."""


@dataclass(frozen=True, slots=True)
class CommitDocument:
    manifest: str
    generation: int
    attempt: int
    partition: Partition
    run: str
    started_at: str
    objects: tuple[PendingObject, ...]
    """Parquet files of the lake: of this generation, and of earlier ones that it keeps."""
    quarantine: tuple[PendingObject, ...]
    sources: tuple[SourceCount, ...]
    new_columns: tuple[str, ...]
    """Column names that the dataset did not have before the attempt."""
    task_milliseconds: int
    """Time of the attempt's tasks, summed over cores."""
    max_line_bytes: int = ConvertSettings().max_line_bytes
    """This and the next two are settings of the attempt that decide its rows."""
    concatenated: bool = False
    provenance: bool = False

    @property
    def written(self) -> tuple[PendingObject, ...]:
        """Objects of lake and quarantine that this generation wrote; the others are kept from earlier generations."""
        prefix = lake_prefix(self.partition, self.manifest, self.generation)
        return tuple(item for item in (*self.objects, *self.quarantine) if item.key.startswith(prefix))

    @property
    def rejected_lines(self) -> tuple[PendingObject, ...]:
        """Quarantine objects with rejected lines: all but the last one if it lists the files that could not be read."""
        return self.quarantine[:-1] if self.failed_files else self.quarantine

    @property
    def rows(self) -> int:
        return sum(item.rows for item in self.objects)

    @property
    def rejects(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for source in self.sources:
            counts.update(source.rejects)
        return counts

    @property
    def failed_files(self) -> int:
        return sum(source.failed is not None for source in self.sources)


def totals_of(document: CommitDocument, etags: Mapping[tuple[str, str], str]) -> PublishedTotals:
    """The totals that the manifest's row gets when the generation is published.

    ``etags`` maps bucket and key of each published object to its ETag, without quotes. The digests cover the objects
    under the prefix of the generation, which a listing shows.
    """
    written = set(document.written)

    def digest(objects: Iterable[PendingObject]) -> PublishedObjects:
        return digest_objects(
            (item.key, item.size, etags[item.bucket, item.key]) for item in objects if item in written
        )

    return PublishedTotals(
        rows=document.rows,
        rejects=dict(document.rejects),
        failed_files=document.failed_files,
        lake=digest(document.objects),
        quarantine=digest(document.quarantine),
        task_milliseconds=document.task_milliseconds,
    )


def put_bound_document(s3: S3Client, control_bucket: str, key: str, document: object) -> CommitReference:
    """Put a document under ``key``, which was never used before; returns the reference that binds it to the ledger."""
    body = encode_body(document)
    put_document(s3, control_bucket, key, body)
    return CommitReference(key, hashlib.sha256(body).hexdigest())


def read_commit(s3: S3Client, control_bucket: str, reference: CommitReference) -> CommitDocument:
    """Get the document that the ledger names. Raises ``UnusableDocumentError``."""
    body = get_bound_document(s3, control_bucket, reference.key, reference.sha256)
    return decode_body(CommitDocument, body, "commit document")


ALGORITHM: Final = "CRC32"
WHOLE_OBJECT: Final = "FULL_OBJECT"
BLOCK_BYTES = 1 << 20


def checksum_of(file: IO[bytes]) -> str:
    """The checksum of the rest of a file, as S3 writes it: 32 bits, big endian, in base64. Reads it to its end."""
    value = 0
    while block := file.read(BLOCK_BYTES):
        value = zlib.crc32(block, value)
    return base64.b64encode(value.to_bytes(4, "big")).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationResult(CommitDocument):
    """The commit document of a published generation, with the values that only the publish yields."""

    published_at: str
    etags: dict[str, str]
    """ETag of each object by its key, without quotes. Another ETag in a listing means that the object was replaced. It
    is not a checksum."""


def write_result(
    s3: S3Client, control_bucket: str, document: CommitDocument, etags: Mapping[tuple[str, str], str], now: datetime
) -> None:
    """Put the result document of the generation. ``etags`` maps (bucket, key) to ETag; ``now`` is aware."""
    # Keys are unique: keys of lake and quarantine have different suffixes.
    by_key = {key: etag for (_, key), etag in etags.items()}
    # For people who read the document by hand: no code reads the sums.
    sums = {
        "rows": document.rows,
        "rejects": document.rejects.total(),
        "blank_lines": sum(source.blank_lines for source in document.sources),
        "failed_files": document.failed_files,
        "input_bytes": sum(source.size for source in document.sources),
        "output_bytes": sum(item.size for item in document.objects),
    }
    result = {**sums, **encode(document), "published_at": iso_utc(now), "etags": by_key}
    put_document(s3, control_bucket, result_key(document.manifest, document.generation), encode_document(result))


def read_result(s3: S3Client, control_bucket: str, manifest: str, generation: int) -> GenerationResult:
    """The result of a published generation. Raises ``InvalidDocumentError`` when its document is gone or damaged."""
    if (found := find_result(s3, control_bucket, manifest, generation)) is None:
        raise gone(f"s3://{control_bucket}/{result_key(manifest, generation)}")
    return found


def find_result(s3: S3Client, control_bucket: str, manifest: str, generation: int) -> GenerationResult | None:
    """The result of a generation, or None if it has no document. Raises ``InvalidDocumentError`` if it is damaged."""
    key = result_key(manifest, generation)
    document = find_document(s3, control_bucket, key)
    return None if document is None else decode_found(GenerationResult, document, f"s3://{control_bucket}/{key}")
