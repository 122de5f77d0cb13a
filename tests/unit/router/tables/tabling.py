"""Helpers for the tests of tables: published generations, and the content of a table."""

import gzip
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from lake.layout import lake_key, quarantine_key
from lake.ledger import ManifestRow, TableRow
from router.iceberg.commit import DATA, Batch, commit_batch, live_entries, manifests_of
from router.iceberg.metadata import DataFile, Metadata, following
from router.tables.batch import TableCatalog
from router.tables.committer import commit_round
from tests.unit.lake.world import upload
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import listed

TABLES = [{"name": "{folder}", "table": "iceberg"}]
COMPACTED = "_tables/orders/data/compacted-g0-0.parquet"


def publish(
    deployment: Deployment,
    row: ManifestRow,
    files: int = 1,
    kept: tuple[Any, ...] = (),
    body: Callable[[str], bytes] = str.encode,
    rows: int = 1,
    *,
    has_table: bool = True,
    rejects: bool = False,
) -> ManifestRow:
    """DONE with this number of files, each with ``body`` of its key and ``rows``; earlier files may be kept.

    ``rejects``: with a file of the quarantine.
    """
    row = deployment.row(row.id)
    keys = [lake_key(row.partition, row.id, row.generation, number) for number in range(files)]
    objects = (*kept, *(upload(deployment.raw_s3, "lake", key, body(key), rows) for key in keys))
    key = quarantine_key(row.partition, row.id, row.generation, 0)
    quarantine = (upload(deployment.raw_s3, "quarantine", key, b"{}"),) if rejects else ()
    return deployment.published(row, has_table=has_table, objects=objects, quarantine=quarantine, new_columns=("a",))


def forced(deployment: Deployment, row: ManifestRow) -> ManifestRow:
    """QUEUED in the next generation."""
    assert deployment.ledger.manifests.force(deployment.row(row.id), deployment.now, "request")
    return deployment.row(row.id)


def table(deployment: Deployment, dataset: str = "orders") -> Metadata:
    entry = TableCatalog(deployment.services, dataset).load()
    assert entry is not None
    return entry.metadata


def row_of(deployment: Deployment) -> TableRow:
    row = deployment.ledger.tables.get("orders")
    assert row is not None
    return row


def swapped(deployment: Deployment, metadata: Metadata, dataset: str = "orders") -> None:
    """Another writer changes the table; its metadata document has another name, and is compressed."""
    catalog = TableCatalog(deployment.services, dataset)
    entry = catalog.load()
    assert entry is not None
    location = f"{catalog.location}/metadata/{uuid4()}.gz.metadata.json"
    catalog.write(location, gzip.compress(json.dumps(following(metadata, entry.location)).encode()))
    entries = {**entry.table, "Parameters": {**entry.table["Parameters"], "previous_metadata_location": entry.location}}
    assert catalog._update(catalog._input(metadata, location, entries), entry.version)


def shown(deployment: Deployment, snapshot: Any = None, dataset: str = "orders") -> list[str]:
    """Manifest and generation of each file in a snapshot, sorted; None selects the current snapshot."""
    metadata, files = table(deployment, dataset), TableCatalog(deployment.services, dataset)
    data = [item for item in manifests_of(metadata, files, snapshot) if item["content"] == DATA]
    paths = [entry["data_file"]["file_path"] for item in data for entry in live_entries(item, files)]
    return sorted(path.rsplit("/", 1)[-1].rsplit("-", 1)[0] for path in paths)


def name_of(row: ManifestRow, generation: int = 1) -> str:
    return f"{row.id}-g{generation}"


def commit(deployment: Deployment, dataset: str = "orders") -> int | None:
    return commit_round(deployment.services, dataset)


def tabled(deployment: Deployment, name: str = "a", **other: Any) -> ManifestRow:
    """A manifest whose only file is in the table."""
    row = publish(deployment, listed(deployment, name), **other)
    commit(deployment)
    return row


def shown_in_the_end(deployment: Deployment) -> list[str]:
    """The content of the table after all pending work is done."""
    while commit(deployment) is not None:
        pass
    return shown(deployment)


def by_another_writer(deployment: Deployment, operation: str, batch: Batch | None = None) -> dict[str, Any]:
    """The table after a change by another writer: its snapshot does not name batches, and the tag stays."""
    before = table(deployment)
    batch = batch or Batch(0, [DataFile("s3://lake/other.parquet", 1, 1, (20000, 0))])
    after = commit_batch(before, TableCatalog(deployment.services, "orders"), batch, 0, 0)
    *_snapshots, last = after["snapshots"]
    last = {**last, "summary": {"operation": operation}}
    refs = {**after["refs"], "hybrid_router": before["refs"]["hybrid_router"]}
    return {**after, "snapshots": [*before["snapshots"], last], "refs": refs, "properties": before["properties"]}


def compacted(deployment: Deployment) -> None:
    """Another writer rewrites the files of the table's first hour into one file."""
    catalog, metadata = TableCatalog(deployment.services, "orders"), table(deployment)
    files = [
        DataFile(data["file_path"], 1, 1, (data["partition"]["date"], data["partition"]["hour"]))
        for manifest in manifests_of(metadata, catalog)
        for data in (entry["data_file"] for entry in live_entries(manifest, catalog))
    ]
    deployment.raw_s3.put_object(Bucket="lake", Key=COMPACTED, Body=b"")
    new = DataFile(f"s3://lake/{COMPACTED}", 1, len(files), files[0].hour)
    swapped(deployment, by_another_writer(deployment, "replace", Batch(0, [new], files)))
