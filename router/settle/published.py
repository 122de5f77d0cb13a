"""Finds damaged objects of DONE manifests by their documents.

It lists the dates of the datasets to see whether all objects of an execution's DONE manifests still exist.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lake.aws_types import S3Client
from lake.commit import read_commit, read_result
from lake.errors import InvalidDocumentError
from lake.layout import after_empty_page, date_prefix, lake_prefix, list_objects, manifest_prefix
from lake.ledger import ManifestRow, PublishedObjects, State
from lake.ledger.manifest_row import NO_OBJECTS, ObjectsDigest
from lake.ledger.table import batches_of
from lake.resource_names import ResourceNames
from lake.texts import format_count
from router.services import Services, in_parallel

MAX_NAMED_OBJECTS = 20
"""Maximum number of damaged objects that a verdict names; all are counted."""


@dataclass(frozen=True, slots=True)
class DamagedObject:
    """An object that is missing, or that differs from what was published."""

    manifest: str
    uri: str
    problem: str
    """Rest of a sentence that begins with the URI."""


def _find_damage(services: Services, row: ManifestRow) -> list[DamagedObject]:
    """Compare each object with the commit document, and with its ETag in the result document: two GETs, and in each
    bucket with objects of the manifest a listing of its prefix. Raises ``ClientError`` if S3 refused a request.
    """
    assert row.published is not None
    reference, control = row.published.document, services.resources.control_bucket
    try:
        document = read_commit(services.s3, control, reference)
    except InvalidDocumentError as error:
        return [DamagedObject(row.id, f"s3://{control}/{reference.key}", f"cannot be used: {error}")]
    try:
        etags = read_result(services.s3, control, document.manifest, document.generation).etags
    except InvalidDocumentError:
        etags = {}
    missing = {(item.bucket, item.key): item for item in (*document.objects, *document.quarantine)}
    problems: list[tuple[str, str, str]] = []
    for bucket in sorted({bucket for bucket, _ in missing}):
        for found in list_objects(services.s3, bucket, manifest_prefix(row.partition, row.id)):
            key, etag = found["Key"], found["ETag"].strip('"')
            item = missing.pop((bucket, key), None)
            if item is not None and found["Size"] != item.size:
                size = format_count(found["Size"], "byte")
                problems.append((bucket, key, f"has {size}, and {item.size:,} were published"))
            elif item is not None and etags.get(key, etag) != etag:
                problems.append((bucket, key, "was replaced after it was published"))
    problems += [(bucket, key, "is missing") for bucket, key in sorted(missing)]
    return [DamagedObject(row.id, f"s3://{bucket}/{key}", problem) for bucket, key, problem in problems]


MAX_NAMED_FILES = 100
"""Maximum number of unreadable files in a verdict document, and of documents that are read to find them."""
PARALLEL_READS = 16
"""Number of threads; each holds the document of one manifest, or one page of a listing."""


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that is in the quarantine by reference."""

    uri: str
    version: str
    manifest: str
    reason: str


def read_unreadable_files(services: Services, rows: Sequence[ManifestRow]) -> list[UnreadableFile]:
    """Up to ``MAX_NAMED_FILES`` unreadable files of the first ``MAX_NAMED_FILES`` of these DONE manifests.

    A manifest contributes none if its result document is gone or damaged.
    """
    found = in_parallel(lambda row: _files_of(services, row), rows[:MAX_NAMED_FILES], PARALLEL_READS)
    return [file for files in found for file in files][:MAX_NAMED_FILES]


def _files_of(services: Services, row: ManifestRow) -> list[UnreadableFile]:
    assert row.published is not None
    try:
        result = read_result(services.s3, services.resources.control_bucket, row.id, row.published.generation)
    except InvalidDocumentError:
        return []
    return [UnreadableFile(item.uri, item.version, row.id, item.failed) for item in result.sources if item.failed]


MANIFESTS_PER_LISTING = 500
"""Manifests per listing: a date with more manifests of a dataset is listed in parallel parts."""


class _Expected(NamedTuple):
    """The expected objects of one manifest under one prefix."""

    prefix: str
    manifest: str
    objects: PublishedObjects | None
    """None if any object is enough."""


class PublishedManifests:
    """DONE manifests whose objects are checked after all rows were read.

    It keeps about 1 KiB for each manifest, and nothing for each object.
    """

    def __init__(self, resources: ResourceNames) -> None:
        self._resources = resources
        self._expected: defaultdict[tuple[str, str], list[_Expected]] = defaultdict(list)
        """By bucket and by the folder that begins every prefix."""

    def add(self, row: ManifestRow) -> None:
        assert row.published is not None
        totals = row.published.totals
        folder, key = date_prefix(row.partition), row.published.document.key
        # The published generation can be an earlier one.
        prefix = lake_prefix(row.partition, row.id, row.published.generation)
        buckets = self._resources
        for bucket, objects in ((buckets.lake_bucket, totals.lake), (buckets.quarantine_bucket, totals.quarantine)):
            # A manifest without objects in a bucket needs no listing there.
            if objects != NO_OBJECTS:
                self._expected[bucket, folder].append(_Expected(prefix, row.id, objects))
        documents = self._expected[buckets.control_bucket, key[: key.rindex("/") + 1]]
        documents.append(_Expected(key.removesuffix(".json"), row.id, None))

    def find_damage(self, services: Services) -> tuple[int, list[DamagedObject]]:
        """The number of damaged objects, including lost commit documents, and the first ``MAX_NAMED_OBJECTS`` of them.

        It lists folders, 1,000 objects per request, and never needs more requests than one listing per manifest.
        If a listing differs from a row's digest, the manifest's documents are read to find the objects that differ; a
        foreign object under its prefix is not damage. The documents belong to the generation that is published by
        then; a manifest that is open again is skipped. Raises ``ClientError`` if S3 or DynamoDB refused a
        request.
        """
        listings = [
            (bucket, folder, some)
            for (bucket, folder), expected in self._expected.items()
            for some in batches_of(sorted(expected, key=lambda item: item.prefix), MANIFESTS_PER_LISTING)
        ]
        missing, objects, named = Counter[str](), 0, list[DamagedObject]()
        for found in in_parallel(lambda listing: _suspects(services.s3, *listing), listings, PARALLEL_READS):
            missing.update(found)
        for ids in batches_of(sorted(missing)):
            rows = services.ledger.manifests.get_many(ids)
            done = [row for row in rows if row is not None and row.state == State.DONE]
            # In an emptied bucket, most objects are only counted, because a comparison takes four requests each.
            compared = [row for row in done if len(named) < MAX_NAMED_OBJECTS or not missing[row.id]]
            for damaged in in_parallel(lambda row: _find_damage(services, row), compared, PARALLEL_READS):
                objects += len(damaged)
                named += damaged[: MAX_NAMED_OBJECTS - len(named)]
            objects += sum(missing[row.id] for row in done) - sum(missing[row.id] for row in compared)
        return objects, named


def _suspects(s3: S3Client, bucket: str, folder: str, expected: Sequence[_Expected]) -> dict[str, int]:
    """Manifests whose objects differ from the expected ones, each with its number of missing objects."""
    found, suspects = list_digests(s3, bucket, folder, [item.prefix for item in expected]), dict[str, int]()
    for item, objects in zip(expected, found, strict=True):
        if item.objects is None:
            if not objects.count:
                suspects[item.manifest] = 1
        elif objects != item.objects:
            suspects[item.manifest] = max(item.objects.count - objects.count, 0)
    return suspects


def list_digests(s3: S3Client, bucket: str, folder: str, prefixes: Sequence[str]) -> list[PublishedObjects]:
    """The objects under each prefix, by one listing of the folder that skips the keys between prefixes.

    ``folder`` begins every prefix. ``prefixes`` are sorted, and no prefix begins another one.
    """
    digests = [ObjectsDigest() for _ in prefixes]
    position, after = 0, ""
    token: dict[str, str] = {}
    while position < len(prefixes):
        # A general purpose bucket lists in the order of UTF-8 bytes, which is also Python's order of strings.
        start = token or {"StartAfter": max(after, prefixes[position])}
        page = s3.list_objects_v2(Bucket=bucket, Prefix=folder, **start)  # type: ignore[arg-type]
        for item in page.get("Contents", []):
            after = item["Key"]
            while position < len(prefixes) and prefixes[position] < after and not after.startswith(prefixes[position]):
                position += 1
            if position == len(prefixes):
                break
            if after.startswith(prefixes[position]):
                digests[position].add(after, item["Size"], item["ETag"].strip('"'))
        if not page["IsTruncated"]:
            break
        token = {} if "Contents" in page else after_empty_page(page)
    return [digest.result() for digest in digests]
