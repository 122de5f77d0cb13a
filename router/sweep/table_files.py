"""Files of the metadata of Iceberg tables that nothing refers to any more: deleted once a day for each table.

A batch that loses its swap leaves files that no document names, and an expired snapshot those that only it has named.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger.table import batches_of
from lake.s3_uri import list_objects, parse_s3_uri
from router.iceberg.commit import manifests_of
from router.services import PARALLEL_REQUESTS
from router.tables.catalog_entry import TableCatalog
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake.ledger import TableRow
    from router.sweep.repair import Repair
    from router.tables.catalog_entry import CatalogEntry

INTERVAL = timedelta(days=1)
MIN_AGE = timedelta(days=3)
"""Far longer than any writer works on a snapshot: its files are there before a document names them."""


def delete_table_files(repair: Repair) -> None:
    """Delete what no retained snapshot needs of the metadata; counts it as ``deleted``. Data files stay."""
    services = repair.services
    names = (name for name in services.ledger.datasets.names() if services.settings.has_table(name))
    for batch in batches_of(names):
        for row in services.ledger.tables.get_many(batch):
            if repair.expired:
                return
            if not row.cleaned_at or services.clock() - datetime.fromisoformat(row.cleaned_at) >= INTERVAL:
                with repair.isolated("table files", dataset=row.dataset):
                    _clean(repair, row)


def _clean(repair: Repair, row: TableRow) -> None:
    services = repair.services
    catalog = TableCatalog(services, row.dataset)
    folder = parse_s3_uri(f"{catalog.location}/metadata/")
    # Listed before the document is read: what a later document names is younger than all that is deleted.
    before = services.clock() - MIN_AGE
    old = [
        item["Key"] for item in list_objects(services.s3, folder.bucket, folder.key) if item["LastModified"] < before
    ]
    entry = catalog.load()
    if entry is not None:
        needed = set(_needed(catalog, entry))
        for key in old:
            uri = f"s3://{folder.bucket}/{key}"
            if uri not in needed and not repair.only_counts("deleted", uri):
                services.s3.delete_object(Bucket=folder.bucket, Key=key)
                repair.count("deleted")
    if not repair.dry_run:
        services.ledger.tables.note_cleaned(row, services.clock())
        logger.info("metadata of a table cleaned", dataset=row.dataset, old=len(old))


def _needed(catalog: TableCatalog, entry: CatalogEntry) -> Iterator[str]:
    """The files that the document names, those that its snapshots name, and itself."""
    metadata = entry.metadata
    yield entry.location
    yield from (item["metadata-file"] for item in metadata["metadata-log"])
    for name in ("statistics", "partition-statistics"):
        yield from (item["statistics-path"] for item in metadata.get(name, ()))
    snapshots = metadata["snapshots"]
    yield from (item["manifest-list"] for item in snapshots)
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        for manifests in pool.map(lambda item: manifests_of(metadata, catalog, item), snapshots):
            yield from (item["manifest_path"] for item in manifests)
