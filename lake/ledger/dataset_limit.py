"""How many datasets keys may create: a ``{folder}`` rule takes a dataset's name from the key, which uploaders choose.

Each dataset that was let in has a row, and one row counts them. Both are written by one transaction, whose condition is
the limit, so that no number of concurrent callers exceeds it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from lake.ledger.table import Condition, Key, RefusedError, put_request, update_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger.table import LedgerTable

NUMBER = Key("dataset-count", "dataset-count")
DATASET_NAMES = "dataset-name"
"""Partition key of the names of all datasets."""


def name_key(dataset: str) -> Key:
    """Primary key of the item that says that a dataset exists."""
    return Key(DATASET_NAMES, dataset)


def is_admitted(table: LedgerTable, name: str, max_datasets: int, registered: Iterable[str]) -> bool:
    """Whether the dataset was let in, or is now because there are fewer than ``max_datasets``; idempotent.

    Nothing is ever taken back: a lower limit lets in no further dataset. A dataset that exists already, because
    the settings named it, is let in without being counted.

    Parameters
    ----------
    registered
        Names of the datasets that exist already; only iterated by the first call of a deployment, to count them.
    """
    key = Key("admitted-dataset", name)
    if table.get(key) is not None:
        return True
    if table.get(name_key(name)) is not None:
        with suppress(RefusedError):
            table.put(key, {}, [Condition("pk", "missing")])
        return True
    if _number(table, registered) >= max_datasets:
        return False
    room = [Condition("number", "<", max_datasets)]
    try:
        table.transact(
            [
                {"Put": put_request(table.name, key, {}, [Condition("pk", "missing")])},
                {"Update": update_request(table.name, NUMBER, {}, {"number": 1}, (), room)},
            ]
        )
    except RefusedError:
        # Another caller has let it in, or this one has and its answer was lost, or there is no room any more.
        return table.get(key) is not None
    return True


def _number(table: LedgerTable, registered: Iterable[str]) -> int:
    """The datasets that count."""
    item = table.get(NUMBER)
    if item is None:
        with suppress(RefusedError):
            table.put(NUMBER, {"number": sum(1 for _ in registered)}, [Condition("pk", "missing")])
        item = table.get(NUMBER)
    return 0 if item is None else int(item["number"])
