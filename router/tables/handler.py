"""Lambda function ``tables``: brings published generations into the Iceberg tables.

It also restores or rebuilds a stopped table for a person who has decided so.
"""

import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from lake.errors import InvalidInputError, TransientError
from lake.ledger import OutboxEntry, TableRow
from lake.time import epoch_milliseconds
from router.entry import lambda_handler
from router.iceberg.metadata import TAG, batch_of, new_metadata
from router.services import Services, in_parallel
from router.tables.batch import PARALLEL_TABLES, TableCatalog
from router.tables.committer import commit_round, hours_of, takes_batches
from router.telemetry import Metric, count, logger

TIME_PER_CALL = timedelta(seconds=240)
"""Time after which no batch is begun; shorter than the function's timeout of 5 minutes."""
INVOCATION_SECONDS = 60
"""Interval between two invocations: the shortest one of a schedule."""


def tables(event: dict[str, Any], services: Services) -> dict[str, Any]:
    """``{}`` -> ``{"batches": n}``: brings all tables up to date, several times a minute.

    ``{"restore": dataset}`` -> ``{"batch": n}``; ``{"rebuild": dataset}`` -> ``{"hours": n}``.
    """
    if "restore" in event:
        return restore_table(services, event["restore"])
    if "rebuild" in event:
        return rebuild_table(services, event["rebuild"])
    return commit_tables(services, time.sleep)


handler = lambda_handler(tables, answers_refusals=True)


def commit_tables(services: Services, wait: Callable[[float], object]) -> dict[str, Any]:
    """Bring published generations into all tables, every ``tables.commit_seconds`` within a minute.

    ``wait`` sleeps for a number of seconds. An error of one table does not stop the others. Raises ``Exception``: the
    first error of a table, after all others were tried; the log names each table.
    """
    started, seconds = services.clock(), services.settings.tables.commit_seconds
    stop_at, batches, looks = started + TIME_PER_CALL, 0, max(1, INVOCATION_SECONDS // seconds)
    errors: list[Exception] = []
    for number in range(looks):
        if number:
            if services.clock() >= stop_at:
                break
            wait(seconds)
        done, errors = _commit_all(services, stop_at)
        batches += done
    count(Metric.TABLES_BEHIND_MINUTES, _minutes_behind(services))
    logger.info("tables", batches=batches, errors=len(errors))
    if errors:
        raise errors[0]
    return {"batches": batches}


def _commit_all(services: Services, stop_at: datetime) -> tuple[int, list[Exception]]:
    """The number of batches, and the error of each table that failed.

    It commits one batch of each table, then the next of each, in a random order: a table whose batches take all the
    time, or end the function, does not always delay the same other tables.
    """

    def commit(dataset: str) -> int | Exception | None:
        try:
            return commit_round(services, dataset) if services.clock() < stop_at else None
        except Exception as error:
            logger.exception("table not updated: the next round retries it", table=dataset)
            return error

    batches = 0
    errors: list[Exception] = []
    waiting = [entry.dataset for entry in _waiting(services)]
    random.shuffle(waiting)
    while waiting:
        done = in_parallel(commit, waiting, PARALLEL_TABLES)
        errors += [outcome for outcome in done if isinstance(outcome, Exception)]
        waiting = [dataset for dataset, outcome in zip(waiting, done, strict=True) if isinstance(outcome, int)]
        batches += len(waiting)
    return batches, errors


def _waiting(services: Services) -> list[OutboxEntry]:
    """The first entry of each table; entries of datasets that were moved back to Hive are left."""
    has_table = services.settings.has_table
    return [entry for entry in services.ledger.tables.waiting() if has_table(entry.dataset)]


def _minutes_behind(services: Services) -> float:
    """Age of the oldest published generation that is not in its table."""
    ages = [0.0]
    for hint in sorted(_waiting(services), key=lambda entry: entry.listed_at):
        oldest = next(services.ledger.tables.outbox(hint.dataset), None)
        if oldest is not None:
            age = services.clock() - datetime.fromisoformat(oldest.listed_at)
            ages.append(age / timedelta(minutes=1))
            if oldest == hint:
                # All others are younger.
                break
    return max(ages)


def restore_table(services: Services, dataset: str) -> dict[str, int]:
    """Make the snapshot of the last batch current again, which undoes the later changes of other writers.

    Returns ``{"batch": n}``. Raises ``InvalidInputError`` if only a rebuild can help.
    """
    row, catalog = _row(services, dataset), TableCatalog(services, dataset)
    rebuild = f"run 'hybrid-router tables rebuild {dataset}'"
    entry = catalog.load()
    tag = entry.metadata["refs"].get(TAG) if entry else None
    if entry is None or tag is None:
        raise InvalidInputError(f"the table {dataset} has no snapshot of a batch to go back to: {rebuild}")
    number = tag["snapshot-id"]
    now = max(epoch_milliseconds(services.clock()), int(entry.metadata["last-updated-ms"]))
    metadata = {
        **entry.metadata,
        "current-snapshot-id": number,
        "refs": {**entry.metadata["refs"], "main": {"snapshot-id": number, "type": "branch"}},
        "last-updated-ms": now,
        "snapshot-log": [*entry.metadata["snapshot-log"], {"snapshot-id": number, "timestamp-ms": now}],
    }
    if not takes_batches(services, row, metadata):
        raise InvalidInputError(f"another writer has changed more of the table {dataset} than its rows: {rebuild}")
    if not catalog.swap(entry, metadata):
        raise TransientError(f"another writer has changed the table {dataset}: run the command again")
    services.ledger.tables.stop(row, None)
    batch = batch_of(metadata)
    logger.info("table restored", dataset=dataset, batch=batch, snapshot=number)
    return {"batch": batch}


def rebuild_table(services: Services, dataset: str) -> dict[str, int]:
    """Replace the catalog's table by a new one, or create the first table of a dataset.

    The committer lists all hours of the ledger for it, and fills it hour by hour. Idempotent: an interrupted call can
    be repeated. Returns ``{"hours": n}``.
    """
    if not services.settings.has_table(dataset):
        raise InvalidInputError(f'no rule of [[datasets]] gives {dataset} table = "iceberg": deploy one that does')
    tables, uuid = services.ledger.tables, str(uuid4())
    if not tables.replace(tables.get(dataset) or tables.create(dataset, uuid), uuid):
        raise TransientError(f"another process has changed the table {dataset}: run the command again")
    catalog, row = TableCatalog(services, dataset), _row(services, dataset)
    catalog.replace(new_metadata(catalog.location, uuid, row.first, epoch_milliseconds(services.clock())))
    # One entry is enough for the committer to find the table.
    hours = hours_of(services, dataset)
    if hours:
        tables.list_hour(hours[-1].partition, services.clock())
    else:
        tables.list_expiry(dataset, services.clock())
    logger.info("table to be rebuilt", dataset=dataset, hours=len(hours))
    return {"hours": len(hours)}


def _row(services: Services, dataset: str) -> TableRow:
    row = services.ledger.tables.get(dataset)
    if row is None:
        raise InvalidInputError(f"the ledger has no Iceberg table {dataset}: run 'hybrid-router tables status'")
    return row
