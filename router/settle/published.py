"""What DONE manifests have published, by their commit documents; and whether the objects are still there."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from lake.commit import read_commit
from lake.documents import get_document
from lake.errors import InvalidDocumentError
from lake.layout import lake_prefix, result_key
from lake.ledger import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mypy_boto3_s3.type_defs import ObjectTypeDef

    from lake.commit import CommitDocument, PendingObject
    from lake.ledger import ManifestRow
    from router.services import Services

PARALLEL_CHECKS = 16
"""Threads; each holds one commit document and one page of a listing."""
MAX_NAMED_OBJECTS = 20
"""Maximum number of damaged objects kept per manifest and per verdict; all of them are counted."""


@dataclass(frozen=True, slots=True)
class DamagedObject:
    """An object that is missing, or differs from what was published."""

    manifest: str
    uri: str
    problem: str
    """Completes a sentence that begins with the URI."""


@dataclass(frozen=True, slots=True)
class PublishedManifest:
    """Totals of a DONE manifest, and what is wrong with its objects."""

    rows: int = 0
    rejects: int = 0
    """Quarantined lines."""
    failed_files: int = 0
    """Files that could not be read as a whole."""
    damaged_objects: int = 0
    damaged: tuple[DamagedObject, ...] = ()
    """The first of them."""


def read_published(services: Services, rows: Iterable[ManifestRow], *, check_objects: bool) -> list[PublishedManifest]:
    """Totals of DONE manifests, in parallel: one GET of the commit document for each.

    Parameters
    ----------
    check_objects
        Compare the objects with what was published as well: one GET of the result document, and one listing of the
        manifest's own prefix for each bucket that has objects of it, 1,000 objects to a page.

    Raises
    ------
    ClientError
        S3 or DynamoDB refused a request.
    """

    def read(row: ManifestRow) -> PublishedManifest:
        return _read(services, row, check_objects=check_objects)

    with ThreadPoolExecutor(PARALLEL_CHECKS) as pool:
        return list(pool.map(read, rows))


def _read(services: Services, row: ManifestRow, *, check_objects: bool) -> PublishedManifest:
    assert row.published is not None
    reference, control = row.published.document, services.resources.control_bucket
    try:
        document = read_commit(services.s3, control, reference)
    except InvalidDocumentError as error:
        unreadable = DamagedObject(row.id, f"s3://{control}/{reference.key}", f"cannot be used: {error}")
        return PublishedManifest(damaged_objects=1, damaged=(unreadable,))
    damaged = list(_damaged_objects(services, row, document)) if check_objects else []
    if damaged and not _is_current(services, row):
        damaged = []
    return PublishedManifest(
        rows=document.rows,
        rejects=sum(sum(source.rejects.values()) for source in document.sources),
        failed_files=sum(source.failed is not None for source in document.sources),
        damaged_objects=len(damaged),
        damaged=tuple(damaged[:MAX_NAMED_OBJECTS]),
    )


def _damaged_objects(services: Services, row: ManifestRow, document: CommitDocument) -> Iterator[DamagedObject]:
    prefix = lake_prefix(row.partition, row.id, document.generation)
    etags = _published_etags(services, document)
    objects = sorted((*document.objects, *document.quarantine), key=lambda item: item.bucket)
    for bucket, group in groupby(objects, key=lambda item: item.bucket):
        expected = {item.key: item for item in group}
        for found in _list(services, bucket, prefix):
            item = expected.pop(found["Key"], None)
            problem = None if item is None else _difference(item, etags.get(item.key, item.etag), found)
            if problem:
                yield DamagedObject(row.id, f"s3://{bucket}/{found['Key']}", problem)
        for key in sorted(expected):
            yield DamagedObject(row.id, f"s3://{bucket}/{key}", "is missing")


def _list(services: Services, bucket: str, prefix: str) -> Iterator[ObjectTypeDef]:
    after = ""
    while True:
        page = services.s3.list_objects_v2(Bucket=bucket, Prefix=prefix, StartAfter=after)
        found = page.get("Contents", [])
        yield from found
        if not page["IsTruncated"]:
            return
        after = found[-1]["Key"]


def _published_etags(services: Services, document: CommitDocument) -> dict[str, str]:
    """Key -> ETag that the object had when it was published; absent where an earlier version has published it.

    Keys are unique: those of lake and quarantine differ in their suffix.
    """
    key = result_key(document.manifest, document.generation)
    try:
        body = get_document(services.s3, services.resources.control_bucket, key)
    except InvalidDocumentError:
        return {}
    result = json.loads(body)
    return {item["key"]: item["etag"] for item in (*result["files"], *result["quarantine"]) if "etag" in item}


def _difference(item: PendingObject, etag: str | None, found: ObjectTypeDef) -> str | None:
    if found["Size"] != item.size:
        return f"has {found['Size']} bytes, and {item.size} were published"
    if etag is not None and found["ETag"].strip('"') != etag:
        return "was replaced after it was published"
    return None


def _is_current(services: Services, row: ManifestRow) -> bool:
    """Whether this generation is still the result: a newer one replaces its objects, and has its own execution."""
    current = services.ledger.manifests.get(row.id)
    return current is not None and (current.state, current.generation) == (State.DONE, row.generation)
