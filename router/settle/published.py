"""Which objects of a DONE manifest are damaged, by its documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from lake.commit import CommitDocument, PendingObject, read_commit
from lake.documents import get_document
from lake.errors import InvalidDocumentError
from lake.layout import manifest_prefix, result_key
from lake.ledger import ManifestRow, State
from lake.s3_uri import list_objects
from lake.texts import format_count

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ObjectTypeDef

    from router.services import Services


MAX_NAMED_OBJECTS = 20
"""Maximum number of damaged objects that a verdict names; all of them are counted."""


@dataclass(frozen=True, slots=True)
class DamagedObject:
    """An object that is missing, or differs from what was published."""

    manifest: str
    uri: str
    problem: str
    """Completes a sentence that begins with the URI."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Number of damaged objects, and the first ``MAX_NAMED_OBJECTS`` of them."""

    objects: int
    named: tuple[DamagedObject, ...] = ()


NO_DAMAGE = Damage(0)


def find_damage(services: Services, row: ManifestRow) -> Damage:
    """Compare each object with the commit document, and with the ETag of the result document: two GETs, and a listing
    of the manifest's own prefix for each bucket that has objects of it.

    Raises
    ------
    ClientError
        S3 or DynamoDB refused a request.
    """
    document = _read_document(services, row)
    if isinstance(document, Damage):
        return document
    damaged = list(_damaged_objects(services, row, document))
    if not damaged or not current_rows(services, {row.id: row.generation}):
        return NO_DAMAGE
    return Damage(len(damaged), tuple(damaged[:MAX_NAMED_OBJECTS]))


def _read_document(services: Services, row: ManifestRow) -> CommitDocument | Damage:
    assert row.published is not None
    reference, control = row.published.document, services.resources.control_bucket
    try:
        return read_commit(services.s3, control, reference)
    except InvalidDocumentError as error:
        problem = f"cannot be used: {error}"
        return Damage(1, (DamagedObject(row.id, f"s3://{control}/{reference.key}", problem),))


def _damaged_objects(services: Services, row: ManifestRow, document: CommitDocument) -> Iterator[DamagedObject]:
    prefix = manifest_prefix(row.partition, row.id)
    etags = _published_etags(services, document)
    objects = sorted((*document.objects, *document.quarantine), key=lambda item: item.bucket)
    for bucket, group in groupby(objects, key=lambda item: item.bucket):
        expected = {item.key: item for item in group}
        for found in list_objects(services.s3, bucket, prefix):
            item = expected.pop(found["Key"], None)
            problem = None if item is None else _difference(item, etags.get(item.key), found)
            if problem:
                yield DamagedObject(row.id, f"s3://{bucket}/{found['Key']}", problem)
        for key in sorted(expected):
            yield DamagedObject(row.id, f"s3://{bucket}/{key}", "is missing")


def _published_etags(services: Services, document: CommitDocument) -> dict[str, str]:
    """Key -> ETag that the object had when it was published; empty if the result document is gone.

    Keys are unique: those of lake and quarantine differ in their suffix.
    """
    key = result_key(document.manifest, document.generation)
    try:
        body = get_document(services.s3, services.resources.control_bucket, key)
    except InvalidDocumentError:
        return {}
    result = json.loads(body)
    return {item["key"]: item["etag"] for item in (*result["files"], *result["quarantine"])}


def _difference(item: PendingObject, etag: str | None, found: ObjectTypeDef) -> str | None:
    if found["Size"] != item.size:
        return f"has {format_count(found['Size'], 'byte')}, and {item.size:,} were published"
    if etag is not None and found["ETag"].strip('"') != etag:
        return "was replaced after it was published"
    return None


def current_rows(services: Services, generations: Mapping[str, int]) -> list[ManifestRow]:
    """Rows of manifests whose generation is still the result: a newer one replaces its objects, and has its own
    execution.

    ``generations`` has at most ``MAX_BATCH_KEYS`` manifests. Raises botocore's errors.
    """
    rows = services.ledger.manifests.get_many(list(generations))
    return [row for row in rows if row and (row.state, row.generation) == (State.DONE, generations[row.id])]


MAX_NAMED_FILES = 100
"""Maximum number of unreadable files that a verdict document names, and of documents that are read to find them."""
PARALLEL_READS = 16
"""Threads; each holds the document of one manifest."""


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that is in the quarantine by reference."""

    uri: str
    version: str
    manifest: str
    reason: str


def read_unreadable_files(services: Services, rows: Sequence[ManifestRow]) -> list[UnreadableFile]:
    """The unreadable files of the first ``MAX_NAMED_FILES`` of these DONE manifests, as many at most.

    A manifest whose result document is gone names none. Raises botocore's errors.
    """
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        found = pool.map(lambda row: _files_of(services, row), rows[:MAX_NAMED_FILES])
        return [file for files in found for file in files][:MAX_NAMED_FILES]


def _files_of(services: Services, row: ManifestRow) -> list[UnreadableFile]:
    assert row.published is not None
    key = result_key(row.id, row.published.generation)
    try:
        result = json.loads(get_document(services.s3, services.resources.control_bucket, key))
    except InvalidDocumentError:
        return []
    sources = [source for source in result["sources"] if source["failed"]]
    return [UnreadableFile(item["uri"], item["version"], row.id, item["failed"]) for item in sources]
