"""Aborts uploads that no publish needs, and deletes objects of replaced and failed generations.

Once a day it also cleans the folders of Iceberg tables: files of a batch that lost its swap, of an expired snapshot, or
of a compaction.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from functools import cache

from lake.aws_types import MultipartUploadTypeDef
from lake.commit import read_commit
from lake.errors import UnusableDocumentError
from lake.layout import PREFLIGHT, is_own_key, list_objects, manifest_prefix, parse_generation, parse_s3_uri
from lake.ledger import ManifestRow, State, TableRow
from lake.ledger.hours import DueDeletion
from lake.ledger.table import batches_of
from lake.publish import abort_upload
from lake.time import iso_utc
from router.iceberg.commit import live_entries, manifests_of
from router.iceberg.metadata import STATISTICS
from router.services import PARALLEL_REQUESTS, Services, in_parallel
from router.sweep.repair import Repair
from router.tables.batch import CatalogEntry, TableCatalog
from router.tables.committer import takes_batches
from router.telemetry import logger

Rows = dict[str, tuple[ManifestRow | None, frozenset[str] | None]]
"""By manifest id: its row, and the argument ``committed`` of ``may_abort``."""
UNPUBLISHABLE = frozenset({State.DONE, State.FAILED, State.SUPERSEDED})


def abort_uploads(repair: Repair) -> None:
    """Abort uploads of attempts that can never be published; counts them as ``aborted``.

    Rows are read consistently after the page of uploads was listed, so they hold for every listed upload.
    """
    services = repair.services
    for bucket in services.resources.output_buckets:
        for page in repair.in_time(services.s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket)):
            rows: Rows = {}
            for upload in repair.in_time(page.get("Uploads", [])):
                with repair.isolated("upload", key=upload["Key"]):
                    if not _is_unneeded(services, upload, rows):
                        continue
                    if repair.only_counts("aborted", f"s3://{bucket}/{upload['Key']}"):
                        continue
                    abort_upload(services.s3, bucket, upload["Key"], upload["UploadId"])
                    repair.counts["aborted"] += 1
                    logger.info("upload aborted", key=upload["Key"])


def _is_unneeded(services: Services, upload: MultipartUploadTypeDef, rows: Rows) -> bool:
    if upload["Key"].startswith(f"{PREFLIGHT}/"):
        # It is never completed, and a run that lost the answer does not know it.
        return True
    parsed = parse_generation(upload["Key"])
    if parsed is None:
        return False
    manifest, generation = parsed
    if manifest not in rows:
        row = services.ledger.manifests.get(manifest)
        rows[manifest] = row, None if row is None else _committed_uploads(services, row)
    row, committed = rows[manifest]
    if row is None or not is_own_key(upload["Key"], row.partition, manifest, generation):
        return False
    return may_abort(row, generation, upload["UploadId"], committed)


def may_abort(row: ManifestRow, generation: int, upload_id: str, committed: Collection[str] | None) -> bool:
    """Whether no publish can ever need this upload. Pure.

    ``row`` was read after the upload was listed. ``committed`` has the upload ids in its commit document; None if there
    is no readable document.
    """
    if row.state in UNPUBLISHABLE or generation < row.generation:
        return True
    return row.state == State.PUBLISHING and committed is not None and upload_id not in committed


def _committed_uploads(services: Services, row: ManifestRow) -> frozenset[str] | None:
    if row.state != State.PUBLISHING or row.document is None:
        return None
    try:
        document = read_commit(services.s3, services.resources.control_bucket, row.document)
    except UnusableDocumentError as error:
        logger.warning("uploads kept, their commit document cannot be used", manifest_id=row.id, reason=str(error))
        return None
    return frozenset(item.upload_id for item in (*document.objects, *document.quarantine))


LISTING = "deletions"


def delete_replaced(repair: Repair) -> None:
    """Delete the objects of replaced and failed generations after ``sweep.grace_minutes``; counts them as ``deleted``.

    A sweep has time for some thousand manifests, independent of the size of the lake. The next sweep continues from
    there, so that objects that a table keeps never hold up the others.
    """
    services = repair.services
    begun = after = str(repair.read_position(LISTING).get("after", "0"))
    before = services.clock() - timedelta(minutes=services.settings.sweep.grace_minutes)
    # Read before the manifests: the batch below which no snapshot shows anything only grows.
    table_of = cache(services.ledger.tables.get)

    @cache
    def keeps(dataset: str) -> bool:
        """Whether the table keeps what it may show; also requests a batch, in case nothing is published any more."""
        if not services.settings.has_table(dataset):
            return table_of(dataset) is not None and TableCatalog(services, dataset).exists()
        if not repair.dry_run:
            services.ledger.tables.list_expiry(dataset, services.clock())
        return True

    for batch in batches_of(services.ledger.deletions.due(before, after), PARALLEL_REQUESTS):
        after = batch[0].place
        if repair.expired:
            break
        ready = [due for due in batch if not due.only_lake or _may_be_expired(services, due)]
        in_parallel(lambda due: _delete(repair, due, table_of(due.partition.dataset), keeps), ready)
    else:
        after = "0"
    if after != begun:
        repair.save_position(LISTING, {"after": after})


def _delete(repair: Repair, due: DueDeletion, table: TableRow | None, keeps: Callable[[str], bool]) -> None:
    services, deleted = repair.services, 0
    with repair.isolated("replaced objects", manifest_id=due.manifest):
        row = services.ledger.manifests.get(due.manifest)
        assert row is not None
        dataset = due.partition.dataset
        table = table if services.settings.has_table(dataset) else None
        is_kept = _may_be_shown(due, row, table) and (not _may_be_expired(services, due) or keeps(dataset))
        if is_kept and due.only_lake:
            partitions, is_hive = services.ledger.partitions, not services.settings.has_table(dataset)
            if is_hive and not repair.dry_run and partitions.get(due.partition).is_settled:
                # The hour was complete for its table only: readers of the files see the rows of both generations.
                partitions.touch(due.partition, services.clock())
            return
        for bucket, key in _deletable(services, due, row):
            # No table shows the quarantine, whose readers would find rejected lines twice.
            if is_kept and bucket != services.resources.quarantine_bucket:
                continue
            if repair.only_counts("deleted", f"s3://{bucket}/{key}"):
                continue
            services.s3.delete_object(Bucket=bucket, Key=key)
            repair.count("deleted")
            deleted += 1
        if repair.dry_run:
            return
        if is_kept:
            services.ledger.deletions.keep_lake(due)
        else:
            services.ledger.deletions.close(due, services.clock())
        logger.info("replaced objects deleted", manifest_id=row.id, generation=due.generation, objects=deleted)


def _may_be_expired(services: Services, due: DueDeletion) -> bool:
    """Whether no snapshot shows the replaced objects, or all may be older than ``tables.keep_hours``. No request."""
    settings = services.settings
    age = services.clock() - datetime.fromisoformat(due.ended_at)
    return not settings.has_table(due.partition.dataset) or age > timedelta(hours=settings.tables.keep_hours)


def _may_be_shown(due: DueDeletion, row: ManifestRow, table: TableRow | None) -> bool:
    """Whether a retained snapshot of the Iceberg table can show the objects, so that the deletion stays due. Pure.

    ``table`` is None if the settings no longer ask for a table: the existing one stays complete until a person deletes
    it from the catalog.
    """
    if row.published is None or row.published.generation != due.generation:
        return False
    return table is None or not row.is_tabled or row.tabled is None or row.tabled.batch > table.oldest


def _deletable(services: Services, due: DueDeletion, row: ManifestRow) -> Iterator[tuple[str, str]]:
    """Bucket and key of each object to delete.

    Raises ``UnusableDocumentError`` if the objects of the published generation are not known.
    """
    kept: Collection[tuple[str, str]] = ()
    if row.published is not None:
        # A later generation has replaced this one: its own due deletion covers all of these objects.
        if row.published.generation > due.generation:
            return
        document = read_commit(services.s3, services.resources.control_bucket, row.published.document)
        kept = {(item.bucket, item.key) for item in (*document.objects, *document.quarantine)}
    for bucket in services.resources.output_buckets:
        for item in list_objects(services.s3, bucket, manifest_prefix(row.partition, row.id)):
            key, parsed = item["Key"], parse_generation(item["Key"])
            if parsed is None or not is_own_key(key, row.partition, *parsed):
                continue
            if may_delete(row, due, parsed[1]) and (bucket, key) not in kept:
                yield bucket, key


def may_delete(row: ManifestRow, due: DueDeletion, generation: int) -> bool:
    """Whether a due deletion covers an object of ``generation``, unless the published generation needs it. Pure.

    A due generation has ended: it is published, or it can never be.
    """
    is_published = row.published is not None and row.published.generation == due.generation
    return generation < due.generation if is_published else generation == due.generation


INTERVAL = timedelta(days=1)
DATA_FOLDER = "data/"
"""Folder of other writers' data files, below the location of a table (Apache Iceberg, ``write.data.path``)."""
MIN_AGE = timedelta(days=3)
"""Minimum age of a deleted file: far longer than a writer works on a snapshot before a document names its files."""

LISTS_AT_ONCE = 8
"""Maximum manifest lists in memory: each can have thousands of manifests, of 1.2 KiB."""


def delete_table_files(repair: Repair) -> None:
    """Delete files in the tables' own folders that no retained snapshot needs; counts them as ``deleted``.

    These are metadata files, and data files of compactions. The lake's own objects are not in these folders. A table
    whose rows another writer has changed gets an entry in the outbox, so that the next round stops it.
    """
    services = repair.services
    names = filter(services.settings.has_table, services.ledger.datasets.names())
    rows = [row for batch in batches_of(names) for row in services.ledger.tables.get_many(batch)]
    # A sweep may lack time for all tables: the table that has waited longest comes first.
    for row in repair.in_time(sorted(rows, key=lambda row: row.cleaned_at)):
        if row.cleaned_at and services.clock() - datetime.fromisoformat(row.cleaned_at) < INTERVAL:
            return
        with repair.isolated("table files", dataset=row.dataset):
            _clean(repair, row)


def _clean(repair: Repair, row: TableRow) -> None:
    services = repair.services
    catalog = TableCatalog(services, row.dataset)
    folder = parse_s3_uri(f"{catalog.location}/")
    # Listed before the document is read: files that a later document names are younger than all deleted ones.
    before = services.clock() - MIN_AGE
    old = {
        f"s3://{folder.bucket}/{item['Key']}": item["Key"]
        for name in ("metadata/", DATA_FOLDER)
        for item in list_objects(services.s3, folder.bucket, f"{folder.key}{name}")
        if item["LastModified"] < before
    }
    entry = catalog.load()
    # A new table is unlisted if its rebuild ended before it listed an hour.
    is_current = entry is not None and not row.unlisted and takes_batches(services, row, entry.metadata)
    if not repair.dry_run and not is_current:
        services.ledger.tables.list_expiry(row.dataset, services.clock())
    if entry is not None:
        data = f"{catalog.location}/{DATA_FOLDER}"
        needed = set(_needed(catalog, entry, data if any(uri.startswith(data) for uri in old) else None))
        for uri, key in old.items():
            if uri not in needed and not repair.only_counts("deleted", uri):
                services.s3.delete_object(Bucket=folder.bucket, Key=key)
                repair.count("deleted")
    if not repair.dry_run:
        services.ledger.tables.note(row, cleaned_at=iso_utc(services.clock()))
        logger.info("folder of a table cleaned", dataset=row.dataset, old=len(old))


def _needed(catalog: TableCatalog, entry: CatalogEntry, data: str | None) -> Iterator[str]:
    """The files that the document or its snapshots name, and the document itself.

    Data files are included if their URIs begin with ``data``; with None no data file is, and no manifest is read.
    """
    metadata = entry.metadata
    yield entry.location
    yield from (item["metadata-file"] for item in metadata["metadata-log"])
    for name in STATISTICS:
        yield from (item["statistics-path"] for item in metadata.get(name, ()))
    snapshots = metadata["snapshots"]
    yield from (item["manifest-list"] for item in snapshots)
    # Only some lists at a time: thousands of snapshots name the same manifests.
    some_snapshots = batches_of(snapshots, LISTS_AT_ONCE)
    lists = (in_parallel(lambda item: manifests_of(metadata, catalog, item), some) for some in some_snapshots)
    manifests = {item["manifest_path"]: item for some in lists for of_snapshot in some for item in of_snapshot}
    yield from manifests
    if data is not None:
        # In sequence: a manifest can have 10,000 files.
        for manifest in manifests.values():
            entries = live_entries(manifest, catalog)
            # Spark's older file systems name an object s3a://.
            paths = (item["data_file"]["file_path"].replace("s3a://", "s3://", 1) for item in entries)
            yield from (path for path in paths if path.startswith(data))
