"""What a person decides about a table that is stopped, or that does not exist yet: restore, rebuild."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from lake.errors import InvalidInputError, TransientError
from lake.time import epoch_milliseconds
from router.iceberg.metadata import TAG, new_metadata
from router.tables.catalog_entry import TableCatalog
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.ledger import TableRow
    from router.services import Services

FIRST_HOUR, LAST_HOUR = "0000-00-00T00", "9999-99-99T99"


def restore_table(services: Services, dataset: str) -> dict[str, int]:
    """Make the snapshot of the last batch the current one again: what other writers did after it is undone.

    Returns ``{"batch": n}``. Raises ``InvalidInputError`` if only a rebuild can help.
    """
    row, catalog = _row(services, dataset), TableCatalog(services, dataset)
    entry = catalog.load()
    tag = entry.metadata["refs"].get(TAG) if entry else None
    if entry is None or tag is None or entry.metadata["table-uuid"] != row.uuid:
        raise InvalidInputError(
            f"the table {dataset} has no snapshot of a batch to go back to: "
            f"run 'hybrid-router tables rebuild {dataset}'"
        )
    number = tag["snapshot-id"]
    now = max(epoch_milliseconds(services.clock()), int(entry.metadata["last-updated-ms"]))
    metadata = {
        **entry.metadata,
        "current-snapshot-id": number,
        "refs": {**entry.metadata["refs"], "main": {"snapshot-id": number, "type": "branch"}},
        "last-updated-ms": now,
        "snapshot-log": [*entry.metadata["snapshot-log"], {"snapshot-id": number, "timestamp-ms": now}],
    }
    if not catalog.swap(entry, metadata):
        raise TransientError(f"another writer has changed the table {dataset}: run the command again")
    services.ledger.tables.stop(row, None)
    logger.info("table restored", dataset=dataset, batch=row.applied, snapshot=number)
    return {"batch": row.applied}


def rebuild_table(services: Services, dataset: str) -> dict[str, int]:
    """A new table takes the place of the one that the catalog has, and all hours of the ledger are listed for it.

    Also for a dataset that has no table yet. The committer fills the new table hour by hour. Idempotent: a call that
    was interrupted is repeated. Returns ``{"hours": n}``.
    """
    if not services.settings.has_table(dataset):
        raise InvalidInputError(f'no rule of [[datasets]] gives {dataset} table = "iceberg": deploy one that does')
    tables = services.ledger.tables
    row = tables.get(dataset)
    if row is not None:
        uuid = str(uuid4())
        if not tables.replace(row, uuid):
            raise TransientError(f"another process has changed the table {dataset}: run the command again")
        current = _row(services, dataset)
        catalog = TableCatalog(services, dataset)
        now = epoch_milliseconds(services.clock())
        catalog.replace(new_metadata(catalog.location, uuid, current.first, now))
    hours = services.ledger.partitions.hours(dataset, FIRST_HOUR, LAST_HOUR)
    for hour in hours:
        tables.list_hour(hour.partition, services.clock())
    logger.info("table to be rebuilt", dataset=dataset, hours=len(hours))
    return {"hours": len(hours)}


def _row(services: Services, dataset: str) -> TableRow:
    row = services.ledger.tables.get(dataset)
    if row is None:
        raise InvalidInputError(f"the ledger has no Iceberg table {dataset}: run 'hybrid-router tables status'")
    return row
