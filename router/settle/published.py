"""Which objects of a DONE manifest are damaged, by its documents.

Whether all objects of an execution's DONE manifests are still there is seen by listing the dates of their datasets.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

from lake.aws_types import ObjectTypeDef, S3Client
from lake.commit import CommitDocument, PendingObject, read_commit, read_result
from lake.errors import InvalidDocumentError
from lake.layout import after_empty_page, date_prefix, lake_prefix, list_objects, manifest_prefix
from lake.ledger import ManifestRow, PublishedObjects, PublishedTotals, State
from lake.ledger.manifest_row import NO_OBJECTS, ObjectsDigest
from lake.ledger.table import batches_of
from lake.texts import format_count
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
    of the manifest's own prefix for each bucket that has objects of it. Raises ``ClientError``: S3 or DynamoDB refused
    a request.
    """
    assert row.published is not None
    reference, control = row.published.document, services.resources.control_bucket
    try:
        document = read_commit(services.s3, control, reference)
    except InvalidDocumentError as error:
        return Damage(1, (DamagedObject(row.id, f"s3://{control}/{reference.key}", f"cannot be used: {error}"),))
    damaged = list(_damaged_objects(services, row, document))
    if not damaged or not current_rows(services, {row.id: row.generation}):
        return NO_DAMAGE
    return Damage(len(damaged), tuple(damaged[:MAX_NAMED_OBJECTS]))


def _damaged_objects(services: Services, row: ManifestRow, document: CommitDocument) -> Iterator[DamagedObject]:
    prefix = manifest_prefix(row.partition, row.id)
    try:
        result = read_result(services.s3, services.resources.control_bucket, document.manifest, document.generation)
        # Keys are unique: those of lake and quarantine differ in their suffix.
        etags = {item.key: item.etag for item in (*result.files, *result.quarantine)}
    except InvalidDocumentError:
        etags = {}
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


def _difference(item: PendingObject, etag: str | None, found: ObjectTypeDef) -> str | None:
    if found["Size"] != item.size:
        return f"has {format_count(found['Size'], 'byte')}, and {item.size:,} were published"
    if etag is not None and found["ETag"].strip('"') != etag:
        return "was replaced after it was published"
    return None


def current_rows(services: Services, generations: Mapping[str, int]) -> list[ManifestRow]:
    """Rows of manifests whose generation is still the result: a newer one replaces its objects, and has its own
    execution.

    ``generations`` has at most ``MAX_BATCH_KEYS`` manifests.
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
    """The unreadable files of the first ``MAX_NAMED_FILES`` of these DONE manifests, at most ``MAX_NAMED_FILES``.

    A manifest whose result document is gone or damaged names none.
    """
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        found = pool.map(lambda row: _files_of(services, row), rows[:MAX_NAMED_FILES])
        return [file for files in found for file in files][:MAX_NAMED_FILES]


def _files_of(services: Services, row: ManifestRow) -> list[UnreadableFile]:
    assert row.published is not None
    try:
        result = read_result(services.s3, services.resources.control_bucket, row.id, row.published.generation)
    except InvalidDocumentError:
        return []
    return [UnreadableFile(item.uri, item.version, row.id, item.failed) for item in result.sources if item.failed]


PARALLEL_CHECKS = 16
"""Threads; each holds one page of a listing."""
MANIFESTS_PER_LISTING = 500
"""A date with more manifests of a dataset is listed in several parts at the same time."""


@dataclass(frozen=True, slots=True)
class _Done:
    id: str
    generation: int
    prefix: str
    """The prefix of its objects, which can be those of an earlier generation."""
    document_key: str
    totals: PublishedTotals


@dataclass(frozen=True, slots=True)
class _Expected:
    """The objects of one manifest under one prefix."""

    prefix: str
    manifest: str
    objects: PublishedObjects | None
    """None: any; something must be there."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """What a range of keys of one bucket must have, in the order of the prefixes."""

    bucket: str
    folder: str
    """Begins every prefix."""
    expected: Sequence[_Expected]


class PublishedManifests:
    """DONE manifests, whose objects are checked once all rows have been read.

    It keeps about 1 KiB for each manifest, and nothing for each object.
    """

    def __init__(self) -> None:
        self._by_date: defaultdict[str, list[_Done]] = defaultdict(list)
        """By the prefix of a dataset's date."""

    def add(self, row: ManifestRow, totals: PublishedTotals) -> None:
        assert row.published is not None
        prefix = lake_prefix(row.partition, row.id, row.published.generation)
        done = _Done(row.id, row.generation, prefix, row.published.document.key, totals)
        self._by_date[date_prefix(row.partition)].append(done)

    def find_damage(self, services: Services) -> Iterator[Damage]:
        """Damaged objects of all manifests, and lost commit documents.

        Folders are listed, 1,000 objects to a request, and never more requests than a listing of each manifest needs.
        Only where a row's digest differs from what is listed, the documents of the manifest say what is wrong with
        which object: another object under its prefix is not damage. Raises ``ClientError``: S3 or DynamoDB refused a
        request.
        """
        generations = {item.id: item.generation for group in self._by_date.values() for item in group}
        with ThreadPoolExecutor(PARALLEL_CHECKS) as pool:
            suspects: defaultdict[str, list[int | None]] = defaultdict(list)
            for found in pool.map(lambda listing: _suspects(services.s3, listing), list(self._listings(services))):
                for manifest, missing in found:
                    suspects[manifest].append(missing)
            named = 0
            for ids in batches_of(sorted(suspects)):
                current = current_rows(services, {manifest: generations[manifest] for manifest in ids})
                examined = [row for row in current if named < MAX_NAMED_OBJECTS or None in suspects[row.id]]
                for damage in pool.map(lambda row: find_damage(services, row), examined):
                    named += len(damage.named)
                    yield damage
                counted = {row.id for row in current} - {row.id for row in examined}
                yield Damage(sum(number or 0 for manifest in counted for number in suspects[manifest]))

    def _listings(self, services: Services) -> Iterator[_Listing]:
        resources = services.resources
        documents: defaultdict[str, list[_Expected]] = defaultdict(list)
        for folder, manifests in self._by_date.items():
            lake = [_Expected(item.prefix, item.id, item.totals.lake) for item in manifests]
            quarantine = [_Expected(item.prefix, item.id, item.totals.quarantine) for item in manifests]
            yield from _divide(resources.lake_bucket, folder, lake)
            yield from _divide(resources.quarantine_bucket, folder, quarantine)
            for key, name in ((item.document_key, item.id) for item in manifests):
                documents[key[: key.rindex("/") + 1]].append(_Expected(key.removesuffix(".json"), name, None))
        for folder, expected in documents.items():
            yield from _divide(resources.control_bucket, folder, expected)


def _divide(bucket: str, folder: str, expected: list[_Expected]) -> Iterator[_Listing]:
    # Where a manifest has published nothing there is nothing to look for.
    listed = sorted((item for item in expected if item.objects != NO_OBJECTS), key=lambda item: item.prefix)
    for some in batches_of(listed, MANIFESTS_PER_LISTING):
        yield _Listing(bucket, folder, some)


def _suspects(s3: S3Client, listing: _Listing) -> list[tuple[str, int | None]]:
    """Ids of manifests whose objects differ; with the number of objects if all of them are missing, else None."""
    found = list_digests(s3, listing.bucket, listing.folder, [item.prefix for item in listing.expected])
    suspects: list[tuple[str, int | None]] = []
    for item, objects in zip(listing.expected, found, strict=True):
        if item.objects is None:
            if not objects.count:
                suspects.append((item.manifest, None))
        elif objects != item.objects:
            suspects.append((item.manifest, None if objects.count else item.objects.count))
    return suspects


def list_digests(s3: S3Client, bucket: str, folder: str, prefixes: Sequence[str]) -> list[PublishedObjects]:
    """The objects under each prefix, by listing the folder and leaving out what lies between the prefixes.

    ``folder``: begins every prefix. ``prefixes``: sorted; none begins another one.
    """
    digests = [ObjectsDigest() for _ in prefixes]
    position, after = 0, ""
    token: dict[str, str] = {}
    while position < len(prefixes):
        # A general purpose bucket lists in the order of UTF-8 bytes, which is the order of Python's strings.
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
