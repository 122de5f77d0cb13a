"""Result documents: what a published generation has read and written, for people, settle and proofs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lake.aws_types import S3Client
from lake.commit import CommitDocument, PendingObject, SourceCount
from lake.documents import (
    damaged,
    decode,
    encode,
    encode_document,
    find_document,
    get_document,
    parse_document,
    put_document,
)
from lake.layout import result_key
from lake.manifest import Partition
from lake.time import iso_utc


@dataclass(frozen=True, slots=True)
class ResultObject:
    key: str
    size: int
    rows: int
    etag: str
    """Without quotes: a listing shows with it whether the object was replaced; it says nothing about the content."""


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """The whole result of a published generation; without the fields that are None in its document."""

    manifest: str
    generation: int
    attempt: int
    run: str
    partition: Partition
    started_at: str
    published_at: str
    rows: int
    rejects: int
    blank_lines: int
    failed_files: int
    input_bytes: int
    output_bytes: int
    task_milliseconds: int
    sources: tuple[SourceCount, ...]
    files: tuple[ResultObject, ...]
    quarantine: tuple[ResultObject, ...]


def write_result(
    s3: S3Client, control_bucket: str, document: CommitDocument, etags: Mapping[tuple[str, str], str], now: datetime
) -> None:
    """Put the result document of the generation; ``etags`` by bucket and key, ``now`` is aware."""

    def published(items: tuple[PendingObject, ...]) -> tuple[ResultObject, ...]:
        return tuple(ResultObject(item.key, item.size, item.rows, etags[item.bucket, item.key]) for item in items)

    result = GenerationResult(
        manifest=document.manifest,
        generation=document.generation,
        attempt=document.attempt,
        run=document.run,
        partition=document.partition,
        started_at=document.started_at,
        published_at=iso_utc(now),
        rows=document.rows,
        rejects=sum(document.rejects.values()),
        blank_lines=sum(source.blank_lines for source in document.sources),
        failed_files=document.failed_files,
        input_bytes=sum(source.size for source in document.sources),
        output_bytes=sum(item.size for item in document.objects),
        task_milliseconds=document.task_milliseconds,
        sources=document.sources,
        files=published(document.objects),
        quarantine=published(document.quarantine),
    )
    key = result_key(document.manifest, document.generation)
    put_document(s3, control_bucket, key, encode_document(encode(result)))


def read_result(s3: S3Client, control_bucket: str, manifest: str, generation: int) -> GenerationResult:
    """The result of a published generation. Raises ``InvalidDocumentError`` when its document is gone or damaged."""
    key = result_key(manifest, generation)
    uri = f"s3://{control_bucket}/{key}"
    return _decode(parse_document(get_document(s3, control_bucket, key), uri), uri)


def find_result(s3: S3Client, control_bucket: str, manifest: str, generation: int) -> GenerationResult | None:
    """The result of a generation; None: it has none. Raises ``InvalidDocumentError`` when its document is damaged."""
    key = result_key(manifest, generation)
    document = find_document(s3, control_bucket, key)
    return None if document is None else _decode(document, f"s3://{control_bucket}/{key}")


def _decode(document: dict[str, Any], uri: str) -> GenerationResult:
    try:
        return decode(GenerationResult, document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(uri) from error
