"""Brings published generations into a table, batch by batch. Idempotent, by any process, after a crash at any point.

docs/exactly-once.md has the protocol. Nothing here deletes an object.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from lake.errors import TableStoppedError, TransientError, UnusableDocumentError
from lake.layout import list_objects
from lake.ledger import HourRow, Tabled, TableRow
from lake.ledger.tables import EXPIRY_ENTRY, generation_entry
from lake.manifest import Partition
from lake.time import epoch_milliseconds, iso_utc
from router.catalog.handler import column_names
from router.divide import WritePace
from router.iceberg.commit import Batch, MissingFilesError, commit_batch
from router.iceberg.metadata import (
    BATCH_SNAPSHOT,
    DataFile,
    Metadata,
    batch_of,
    foreign_change,
    hour_of,
    new_metadata,
    oldest_batch,
    takes_files,
)
from router.services import Services, in_parallel
from router.tables.batch import (
    TABLE_REQUESTS,
    BatchItem,
    CatalogEntry,
    PlannedBatch,
    TableCatalog,
    forget,
    plan_batch,
    read_batch_document,
    tabled_of_hour,
    write_batch,
)
from router.telemetry import logger

MAX_TRIES = 8
"""Tries of a swap, because other writers (compaction) may change the entry between the read and the write."""


def commit_round(services: Services, dataset: str) -> int | None:
    """Bring one batch into the table; returns its number, or None if nothing is left to do.

    A batch that another process has begun is finished first. Raises ``TableStoppedError`` if table and ledger disagree,
    another writer has changed rows, or a document cannot be used: nothing is changed, and a person must decide;
    ``TransientError`` if other writers changed the entry at each of ``MAX_TRIES`` tries.
    """
    tables = services.ledger.tables
    row = tables.get(dataset) or tables.create(dataset, str(uuid4()))
    try:
        return _bring_in(services, row)
    except (UnusableDocumentError, TableStoppedError) as error:
        is_unusable = isinstance(error, UnusableDocumentError)
        reason = f"{error}; or run 'hybrid-router tables rebuild {dataset}'" if is_unusable else str(error)
        if not tables.stop(row, reason):
            # A rebuild has begun, and the next round is about the new table.
            return row.applied
        raise TableStoppedError(reason) from error


def _bring_in(services: Services, row: TableRow) -> int | None:
    tables, dataset = services.ledger.tables, row.dataset
    if row.unlisted:
        _list_hours(services, row)
    if row.pending is None:
        # Read after the row, so that no generation of an earlier batch seems to be missing in the table.
        batch = plan_batch(services, row)
        if batch is None:
            tables.stop(row, None)
            return None
        reference = write_batch(services, batch)
        if not tables.intend(row, reference):
            return row.applied
        row = replace(row, pending=reference)
    else:
        batch = read_batch_document(services, row.pending)
    metadata = _apply(services, row, batch)
    _mark(services, batch, int(metadata["properties"][BATCH_SNAPSHOT]))
    tables.close(row, batch.number, oldest_batch(metadata))
    names = [generation_entry(item.manifest, item.generation) for item in batch.items]
    others = dict.fromkeys([*names, *([EXPIRY_ENTRY] if batch.expires else ())])
    forget(services, dataset, {**batch.hours, **others})
    logger.info("batch in the table", dataset=dataset, batch=batch.number, manifests=len(batch.items))
    follow_setting(services, row)
    return batch.number


def hours_of(services: Services, dataset: str) -> list[HourRow]:
    return services.ledger.partitions.hours(dataset, "0000-00-00T00", "9999-99-99T99")


def _list_hours(services: Services, row: TableRow) -> None:
    """List all hours of the dataset for its new table, and then record that. Idempotent."""
    tables, pace, hours = services.ledger.tables, WritePace(), hours_of(services, row.dataset)

    def list_hour(hour: HourRow) -> None:
        pace.take(1)
        tables.list_hour(hour.partition, services.clock())

    in_parallel(list_hour, hours, TABLE_REQUESTS)
    tables.note(row, unlisted=None)
    logger.info("table to be filled", dataset=row.dataset, hours=len(hours))


def _apply(services: Services, row: TableRow, batch: PlannedBatch) -> Metadata:
    """Ensure that the batch is in the table; returns a metadata document that contains it."""
    catalog = TableCatalog(services, row.dataset)
    for _ in range(MAX_TRIES):
        entry = catalog.load()
        if entry is None:
            if row.applied != row.first:
                rebuild = f"run 'hybrid-router tables rebuild {row.dataset}'"
                raise TableStoppedError(f"the table {row.dataset} is gone from the catalog: {rebuild}")
            now = epoch_milliseconds(services.clock())
            catalog.create(new_metadata(catalog.location, row.uuid, row.first, now))
            continue
        if is_applied(services, row, entry.metadata, batch.number):
            return entry.metadata
        metadata = _next_metadata(services, catalog, entry, batch)
        if catalog.swap(entry, metadata):
            return metadata
    raise TransientError(
        f"other writers changed the table {row.dataset} during {MAX_TRIES} tries: the next round tries again"
    )


def is_applied(services: Services, row: TableRow, metadata: Metadata, number: int) -> bool:
    """Whether the batch ``number`` is in the table; if not, it is the next one.

    Raises ``TableStoppedError`` if table and ledger disagree.
    """
    rebuild = f"run 'hybrid-router tables rebuild {row.dataset}'"
    if metadata["table-uuid"] != row.uuid:
        raise TableStoppedError(f"the table {row.dataset} in the catalog is not the ledger's: {rebuild}")
    # No snapshot can undo this.
    if not takes_files(metadata):
        raise TableStoppedError(
            f"another writer has changed format, partitions or types of the table {row.dataset}: {rebuild}"
        )
    found = batch_of(metadata)
    if found >= number:
        # Another process may have continued since this one read the row.
        current = services.ledger.tables.get(row.dataset)
        if current is not None and found <= current.applied + 1:
            return True
    if found != number - 1:
        raise TableStoppedError(f"the table {row.dataset} has batch {found}, the ledger expects {number}: {rebuild}")
    if (change := foreign_change(metadata)) is not None:
        raise TableStoppedError(
            f"the table {row.dataset}: {change}: run 'hybrid-router tables restore {row.dataset}', or "
            f"'hybrid-router tables rebuild {row.dataset}'"
        )
    return False


def takes_batches(services: Services, row: TableRow, metadata: Metadata) -> bool:
    """Whether the next batch can be brought into the table, because no other writer has changed its rows."""
    try:
        is_applied(services, row, metadata, row.applied + 1)
    except TableStoppedError:
        return False
    return True


def _next_metadata(services: Services, catalog: TableCatalog, entry: CatalogEntry, batch: PlannedBatch) -> Metadata:
    now = services.clock()
    dataset = services.ledger.datasets.get(batch.dataset)
    assert dataset is not None
    columns = column_names(dataset)
    keep_from = epoch_milliseconds(now - timedelta(hours=services.settings.tables.keep_hours))

    def next_of(change: Batch) -> Metadata:
        change = replace(change, columns=columns, unnumbered=dataset.unnumbered)
        return commit_batch(entry.metadata, catalog, change, epoch_milliseconds(now), keep_from)

    change = _change(batch)
    try:
        if batch.hours:
            _check_originals(services, change.add)
        return next_of(change)
    except MissingFilesError:
        return next_of(_rebuilt_hours(services, batch))


def _change(batch: PlannedBatch) -> Batch:
    """The change of the batch, for a table that has exactly the files of earlier batches."""
    cleared = {hour_of(Partition.parse(f"{batch.dataset}#{stamp}")) for stamp in batch.hours}
    add: list[DataFile] = []
    remove: list[DataFile] = []
    for item in batch.items:
        # A generation can keep objects of an earlier one.
        before = {} if item.hour in batch.hours else {file.path: file for file in item.before}
        after = {file.path: file for file in item.files}
        add += [file for path, file in after.items() if path not in before]
        remove += [file for path, file in before.items() if path not in after]
    return Batch(batch.number, add, remove, cleared)


def _rebuilt_hours(services: Services, batch: PlannedBatch) -> Batch:
    """The change of the batch if another writer has compacted files: it rebuilds each hour with a replacement.

    All files of such an hour are removed, whoever wrote them. The files of all its manifests are added: this
    batch's manifests, and all that the ledger marks as tabled. No mark changes while a batch is pending.
    """
    hours = {item.hour for item in batch.items if item.before} | set(batch.hours)
    items = {item.manifest for item in batch.items}
    originals: list[DataFile] = []
    cleared = set()
    for stamp in sorted(hours):
        hour = Partition.parse(f"{batch.dataset}#{stamp}")
        cleared.add(hour_of(hour))
        if stamp in batch.hours:
            continue
        for manifest, files in tabled_of_hour(services, hour).items():
            if manifest not in items:
                originals += files
    new = [file for item in batch.items for file in item.files]
    _check_originals(services, [*originals, *(file for file in new if file.hour in cleared)])
    return Batch(batch.number, [*new, *originals], (), cleared)


def _check_originals(services: Services, files: Iterable[DataFile]) -> None:
    """Raise ``TableStoppedError`` if an object that the table should show again is gone or has another size.

    It lists their hours: an hour can have 100,000 objects, too many for single requests in the function's time.
    """
    lake = services.resources.lake_bucket
    prefix = f"s3://{lake}/"
    sizes = {file.path: file.size for file in files}
    folders = {path[len(prefix) : path.rindex("/") + 1] for path in sizes}

    def list_folder(folder: str) -> None:
        for item in list_objects(services.s3, lake, folder):
            path = f"{prefix}{item['Key']}"
            if sizes.get(path) == item["Size"]:
                del sizes[path]

    in_parallel(list_folder, folders, TABLE_REQUESTS)
    gone = [*sizes]
    if gone:
        raise TableStoppedError(
            f"{len(gone)} published objects are gone or changed (first: {gone[0]}): reprocess their manifests, or "
            "restore the objects"
        )


def _mark(services: Services, batch: PlannedBatch, snapshot: int) -> None:
    """Record in the row of each manifest what the table shows."""
    manifests = services.ledger.manifests
    now = iso_utc(services.clock())

    def mark(item: BatchItem) -> None:
        row = manifests.get(item.manifest)
        assert row is not None
        shown = Tabled(item.generation, item.document, batch.number, snapshot, now)
        if row.tabled is not None and row.tabled.generation == shown.generation:
            shown = replace(shown, since=row.tabled.since)
        manifests.mark_tabled(row, shown)

    in_parallel(mark, batch.items, TABLE_REQUESTS)


COMPACTION = "compaction"
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "retention": {"enabled": False},
    "orphan_file_deletion": {"enabled": False},
    COMPACTION: {"enabled": True, "compactionConfiguration": {"icebergConfiguration": {"strategy": "binpack"}}},
}
"""Glue's other optimizers delete files by their own rules, including the lake's. A catalog may switch them on for each
table without optimizers, so they are created, but disabled."""


def follow_setting(services: Services, row: TableRow) -> None:
    """Switch the compaction of the table on or off, once for each change of the setting or of the optimizer's role.

    Raises botocore's errors; the next batch tries again.
    """
    role = services.optimizer_role
    if row.optimizer_role == role:
        return
    glue: Any = services.glue
    table = TableCatalog(services, row.dataset).names()
    if role:
        for kind, configuration in OPTIMIZERS.items():
            request = {**table, "Type": kind, "TableOptimizerConfiguration": {"roleArn": role, **configuration}}
            try:
                glue.create_table_optimizer(**request)
            except glue.exceptions.AlreadyExistsException:
                glue.update_table_optimizer(**request)
    else:
        with suppress(glue.exceptions.EntityNotFoundException):
            glue.delete_table_optimizer(**table, Type=COMPACTION)
    services.ledger.tables.note(row, optimizer_role=role)
    logger.info("compaction of a table", dataset=row.dataset, role=role)
