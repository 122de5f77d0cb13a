"""Which datasets keys may create, and from which folder: the names in keys are chosen by uploaders.

Each dataset that was let in has a row, and one row counts them. Both are written by one transaction, whose condition is
the limit, so that no number of concurrent callers exceeds it. The row also names the folder: names of datasets are
simpler than those of folders, and the files of two folders are not mixed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

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


def claimed_by(table: LedgerTable, name: str, folder: str, max_datasets: int, registered: Iterable[str]) -> str | None:
    """The folder that has the dataset: the first one that asked for it; None: there are ``max_datasets`` others.

    Idempotent. Nothing is ever taken back: a lower limit lets in no further dataset. A dataset that exists already,
    because the settings named it, is let in without being counted.

    Parameters
    ----------
    folder
        The folder that gets the dataset if no other one has it. Folders can have one name by ``name_of_folder``.
    registered
        Names of the datasets that exist already; only iterated by the first call of a deployment, to count them.
    """
    key, new = Key("admitted-dataset", name), [Condition("pk", "missing")]
    if (item := table.get(key)) is not None:
        return _folder(name, item)
    attributes = {} if folder == name else {"folder": folder}
    if table.get(name_key(name)) is not None:
        with suppress(RefusedError):
            table.put(key, attributes, new)
    elif _number(table, registered) >= max_datasets:
        return None
    else:
        room = [Condition("number", "<", max_datasets)]
        with suppress(RefusedError):
            table.transact(
                [
                    {"Put": put_request(table.name, key, attributes, new)},
                    {"Update": update_request(table.name, NUMBER, {}, {"number": 1}, (), room)},
                ]
            )
            return folder
    # Another caller has let it in, or this one has and its answer was lost, or there is no room any more.
    return _folder(name, table.get(key))


def folder_of_dataset(table: LedgerTable, name: str) -> str | None:
    """The folder that has the dataset; None: no key has created it."""
    return _folder(name, table.get(Key("admitted-dataset", name)))


def _folder(name: str, item: dict[str, Any] | None) -> str | None:
    return None if item is None else str(item.get("folder", name))


def _number(table: LedgerTable, registered: Iterable[str]) -> int:
    """The datasets that count."""
    item = table.get(NUMBER)
    if item is None:
        with suppress(RefusedError):
            table.put(NUMBER, {"number": sum(1 for _ in registered)}, [Condition("pk", "missing")])
        item = table.get(NUMBER)
    return 0 if item is None else int(item["number"])
