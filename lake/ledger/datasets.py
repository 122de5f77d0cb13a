"""Dataset rows: known columns, and what conversions measured.

Each dataset has partition keys of its own, so that datasets do not share the throughput of one. It has three items. The
columns, up to hundreds of kilobytes, change only when a column is new; a small item changes with every conversion; the
name, under one partition key for all datasets, is written once.

Uploaders choose the names in keys, so the number of datasets that keys create is limited, and one row counts them. One
transaction, conditional on the limit, writes it with the names, so that concurrent callers cannot exceed it. The item
with the name also has the folder: several folders can lead to one dataset name, and their files must not mix.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from lake.documents import decode_partial, encode
from lake.errors import TransientError
from lake.ledger.costs import DatasetMeasurement, DatasetSpeed, MeasuredDataset
from lake.ledger.table import (
    MAX_BATCH_KEYS,
    MAX_TRANSACTION_ACTIONS,
    MAX_TRIES,
    Condition,
    Key,
    LedgerTable,
    Rows,
    batches_of,
    put_action,
    update_action,
)

NUMBER = Key("dataset-count", "dataset-count")
DATASET_NAMES = "dataset-name"
ROWS_PER_READ = MAX_BATCH_KEYS // 2
"""Datasets in one read: each has two items."""
MAX_NAME_BYTES = 200
"""Maximum length of a column name, which is ASCII (docs/columns.md)."""
NAME_OVERHEAD_BYTES = 4
"""Upper bound of DynamoDB's overhead for an element of a set (Developer Guide, "DynamoDB item sizes and formats")."""
MAX_COLUMN_BYTES = 300_000
"""Maximum for the names with their overhead; an item has at most 400 KB (DynamoDB's "Service quotas")."""
GROWTH = timedelta(days=7)
"""Time after its first column in which a dataset may get all of its columns: wide first files are normal."""
MAX_NEW_A_DAY = 100
"""Maximum new columns of an older dataset in a UTC day: one hostile file must not use up the room for later ones."""


RESCUED = "_rescued"
PROVENANCE = ("_source", "_offset", "_arrived_at")
ADDED_COLUMNS = frozenset({RESCUED, *PROVENANCE})
"""Columns that the reader adds: no key of the input has these names (docs/columns.md)."""
FIRST_FIELD_ID = 1000
"""Lower ids belong to a table's partition columns."""
AFTER_LAST_FIELD_ID = 1 << 30
"""Higher ids belong to columns that people add to a table."""


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """The days on which a dataset got its columns: UTC, YYYY-MM-DD, empty before the first column."""

    first_day: str = ""
    day: str = ""
    """The day of the last new columns."""
    before: int = 0
    """Number of columns before this day."""

    def limit(self, columns: int, column_limit: int, today: date) -> int:
        """The maximum number of columns that a dataset with ``columns`` may have today. Pure."""
        if not self.first_day or today < date.fromisoformat(self.first_day) + GROWTH:
            return column_limit
        before = self.before if self.day >= today.isoformat() else columns
        return max(min(column_limit, before + MAX_NEW_A_DAY), 1)

    def on(self, today: date, columns: int) -> "ColumnHistory":
        """The history after a dataset with ``columns`` gets more today. Pure."""
        if self.day >= today.isoformat():
            return self
        return ColumnHistory(self.first_day or today.isoformat(), today.isoformat(), columns)


NO_HISTORY = ColumnHistory()
NOT_MEASURED = MeasuredDataset()


@dataclass(frozen=True, slots=True)
class DatasetRow:
    name: str
    columns: tuple[str, ...]
    """Known column names, sorted."""
    measured: MeasuredDataset
    history: ColumnHistory = NO_HISTORY
    unnumbered: frozenset[str] = frozenset()
    """Columns whose field id another column has; a file with such a column has no field ids."""
    provenance: bool = False
    """Whether its files may have the columns ``PROVENANCE``, even if the setting is off now."""

    def column_limit(self, column_limit: int, today: date) -> int:
        """The maximum number of columns that it may have today (UTC), at most ``column_limit``."""
        return self.history.limit(len(self.columns), column_limit, today)


class Datasets(Rows):
    def __init__(self, table: LedgerTable) -> None:
        super().__init__(table)
        self.folders: dict[str, str] = {}
        """Maps each dataset that this process knows to its folder, which never changes; empty if no folder is known."""

    def admit(self, folders: Mapping[str, str], max_datasets: int) -> dict[str, str | None]:
        """The folder of each dataset: the first folder that asked for it. None if ``max_datasets`` others exist.

        ``folders`` maps each dataset to the folder that asks; several folders can have one name by ``name_of_folder``.
        An empty folder stands for a rule that names the dataset. Such a dataset is neither refused nor counted, and has
        the empty folder until a folder asks for it. One transaction admits many datasets: all transactions change the
        row of the count, so that transactions for one dataset each would cancel one another. An admission is permanent:
        under a lower limit no further dataset is admitted. Idempotent.

        Raises ``TransientError`` if other callers keep admitting some of the same datasets.
        """
        unread = [name for name in folders if not self._is_answered(name, folders[name])]
        for names in batches_of(unread, MAX_TRANSACTION_ACTIONS - 1):
            for _ in range(MAX_TRIES):
                new = self._without_row(names, folders)
                named, asked = [name for name in new if not folders[name]], [name for name in new if folders[name]]
                room = max(max_datasets - self._begun_number(), 0) if asked else 0
                if self._put_admissions(named + asked[:room], folders, max_datasets):
                    break
            else:
                raise TransientError(f"other callers added datasets during {MAX_TRIES} tries: it is retried")
            # Another caller may have admitted some for which there was no room.
            self._without_row(names, folders)
        return {name: self.folders.get(name) for name in folders}

    def _is_answered(self, name: str, folder: str) -> bool:
        return bool(self.folders.get(name)) or (name in self.folders and not folder)

    def _without_row(self, names: Sequence[str], folders: Mapping[str, str]) -> list[str]:
        """The names without a row, by batched reads. Stores the folders of the others in ``folders``."""
        unread = [name for name in names if not self._is_answered(name, folders[name])]
        rows = self._table.get_many([name_key(name) for name in unread]) if unread else []
        found = {name: row.get("folder", "") for name, row in zip(unread, rows, strict=True) if row is not None}
        for name in (name for name, folder in found.items() if folders[name] and not folder):
            folderless = [Condition("folder", "missing")]
            self._table.update(name_key(name), assign={"folder": folders[name]}, conditions=folderless)
            found[name] = self.folder(name) or ""
        self.folders.update(found)
        return [name for name in unread if name not in found]

    def _put_admissions(self, names: Sequence[str], folders: Mapping[str, str], max_datasets: int) -> bool:
        """Admit all names. False: another caller has admitted one of them, or there is no longer room for all."""
        counted = sum(bool(folders[name]) for name in names)
        actions = [put_action(name_key(name), {"folder": folders[name] or None}) for name in names]
        if counted:
            room = [Condition("number", "<", max_datasets - counted + 1)]
            actions.append(update_action(NUMBER, add={"number": counted}, conditions=room))
        if actions and not self._table.transact(actions):
            return False
        self.folders.update((name, folders[name]) for name in names)
        return True

    def folder(self, name: str) -> str | None:
        """The dataset's folder, by consistent reads until it is found; None if no key has created the dataset."""
        if not self.folders.get(name) and (folder := (self._table.get(name_key(name)) or {}).get("folder")):
            self.folders[name] = folder
        return self.folders.get(name) or None

    def is_known(self, name: str) -> bool:
        """Whether the dataset has been admitted, by a strongly consistent read."""
        return self._table.get(name_key(name)) is not None

    def get(self, name: str) -> DatasetRow | None:
        """The row by strongly consistent reads; None if the dataset is unknown."""
        columns, measured = self._table.get(_columns_key(name)), self._table.get(_measurement_key(name))
        if columns is None and measured is None and not self.is_known(name):
            return None
        return _dataset(name, columns, measured)

    def names(self) -> Iterator[str]:
        """All known datasets, sorted; one page of them is in memory."""
        return (item["sk"] for item in self._table.query(DATASET_NAMES))

    def speeds(self, names: Iterable[str] | None = None) -> dict[str, DatasetSpeed]:
        """Speeds of the named datasets that have measured one, by batched reads; None stands for all datasets."""
        speeds = {}
        for batch in batches_of(self.names() if names is None else names):
            rows = self._table.get_many([_measurement_key(name) for name in batch])
            for name, row in zip(batch, rows, strict=True):
                speed = decode_partial(NOT_MEASURED, row).speed
                if speed.plain is not None or speed.compressed is not None:
                    speeds[name] = speed
        return speeds

    def rows(self, names: Iterable[str]) -> Iterator[DatasetRow]:
        """The rows of known datasets, in the order of ``names``, read a few at a time."""
        for some in batches_of(names, ROWS_PER_READ):
            keys = [key(name) for name in some for key in (_columns_key, _measurement_key)]
            rows = self._table.get_many(keys)
            for number, name in enumerate(some):
                yield _dataset(name, rows[2 * number], rows[2 * number + 1])

    def reserve_columns(
        self, name: str, columns: Iterable[str], column_limit: int, today: date | None = None
    ) -> tuple[str, ...]:
        """Add the column names for which the dataset has room, in order; returns the refused names.

        ``today`` (UTC) also limits the new columns of a day (``ColumnHistory``); pass None for committed columns.
        Idempotent. After a refusal the dataset is full (``is_full``) or has its new columns of the day. Concurrent
        callers share the room: a refused write means that another caller has added a name, so the loop ends. Of several
        columns with one field id the first has it; the others are ``unnumbered``.
        """
        names = tuple(columns)
        key = _columns_key(name)
        while names:
            item = self._table.get(key)
            known, history = _columns(item), decode_partial(NO_HISTORY, item)
            limit = column_limit if today is None else history.limit(len(known), column_limit, today)
            fitting, refused = divide_by_room(known, names, limit)
            if not fitting:
                return refused
            seen = Condition("columns", "size", len(known)) if known else Condition("columns", "missing")
            assign = {} if today is None else asdict(history.on(today, len(known)))
            unnumbered = _unnumbered_of(fitting, set(known) - _unnumbered(item))
            add = {"columns": set(fitting)} | ({"unnumbered": unnumbered} if unnumbered else {})
            if self._table.update(key, assign=assign, add=add, conditions=[seen]):
                return refused
        return ()

    def note_provenance(self, name: str) -> None:
        """Record that files of the dataset are about to get the columns ``PROVENANCE``, which its tables now need."""
        self._table.update(_columns_key(name), assign={"provenance": True})

    def drop_columns(self, name: str, columns: Collection[str], dropped: Collection[str]) -> bool:
        """Remove names from ``columns``, the dataset's columns. False: it has other columns meanwhile."""
        left = set(columns).difference(dropped)
        key, seen = _columns_key(name), [Condition("columns", "=", set(columns))]
        # DynamoDB has no empty sets.
        assign, remove = ({"columns": left}, ()) if left else ({}, ("columns",))
        if self._table.update(key, assign={**assign, "before": len(left)}, remove=remove, conditions=seen):
            return True
        # The answer of an earlier try may have been lost.
        return left == set(_columns(self._table.get(key)))

    def add_measurement(self, name: str, measured: DatasetMeasurement) -> None:
        """Add the measurement of one conversion, by one read and one write unit.

        A client's retry can add it twice, and one of two concurrent callers can lose its sample of the speed: that is
        accurate enough for a ratio and a median.
        """
        key = _measurement_key(name)
        found = decode_partial(NOT_MEASURED, self._table.get(key))
        speeds = {
            "plain": encode(found.plain.add(measured.plain)),
            "compressed": encode(found.compressed.add(measured.compressed)),
        }
        size = measured.plain.bytes + measured.compressed.bytes
        totals = {"input_bytes": size, "output_bytes": measured.output_bytes}
        self._table.update(key, assign=speeds, add=totals)

    def number(self) -> int:
        """The number of datasets that keys have created."""
        return int((self._table.get(NUMBER) or {"number": 0})["number"])

    def _begun_number(self) -> int:
        """``number()``; the first call of a deployment creates the row of the count."""
        number = self.number()
        if not number:
            self._table.update(NUMBER, initial={"number": 0})
        return number


def _columns_key(name: str) -> Key:
    return Key(f"dataset#{name}", "columns")


def _measurement_key(name: str) -> Key:
    return Key(f"dataset#{name}", "measurement")


def _columns(item: dict[str, Any] | None) -> tuple[str, ...]:
    return () if item is None else tuple(sorted(item.get("columns", ())))


def _unnumbered(item: dict[str, Any] | None) -> frozenset[str]:
    return frozenset() if item is None else frozenset(item.get("unnumbered", ()))


def _unnumbered_of(names: Iterable[str], numbered: Iterable[str]) -> set[str]:
    """The new ``names`` whose field id belongs to an earlier name, a column of ``numbered`` or one of the product."""
    taken = {field_id(name): name for name in (*numbered, *ADDED_COLUMNS)}
    return {name for name in names if taken.setdefault(field_id(name), name) != name}


def field_id(column: str) -> int:
    """The id of a column in Parquet files and Iceberg tables. It depends on the name alone, so no read is needed.

    Two of 500 columns share an id in 0.01 % of datasets, two of 10,000 in 5 %.
    """
    number = int.from_bytes(hashlib.sha256(column.encode()).digest()[:8])
    return FIRST_FIELD_ID + number % (AFTER_LAST_FIELD_ID - FIRST_FIELD_ID)


def _dataset(name: str, columns: dict[str, Any] | None, measured: dict[str, Any] | None) -> DatasetRow:
    return DatasetRow(
        name,
        _columns(columns),
        decode_partial(NOT_MEASURED, measured),
        decode_partial(NO_HISTORY, columns),
        _unnumbered(columns),
        provenance=columns is not None and "provenance" in columns,
    )


def name_key(dataset: str) -> Key:
    return Key(DATASET_NAMES, dataset)


def is_full(columns: Collection[str], column_limit: int) -> bool:
    """Whether a dataset with these columns can get no other one, so that further keys go to ``_rescued``."""
    free_bytes = MAX_COLUMN_BYTES - _stored_bytes(columns)
    return len(columns) >= column_limit or free_bytes < MAX_NAME_BYTES + NAME_OVERHEAD_BYTES


def divide_by_room(
    columns: Collection[str], names: Iterable[str], column_limit: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide the names that a dataset with ``columns`` lacks into accepted and refused names.

    In order: when the dataset is full, every further name is refused.
    """
    known = {*columns}
    free_columns = column_limit - len(known)
    free_bytes = MAX_COLUMN_BYTES - _stored_bytes(known)
    fitting: list[str] = []
    refused: list[str] = []
    for name in dict.fromkeys(names):
        if name in known:
            continue
        if free_columns > 0 and free_bytes >= MAX_NAME_BYTES + NAME_OVERHEAD_BYTES:
            free_columns -= 1
            free_bytes -= _stored_bytes([name])
            fitting.append(name)
        else:
            refused.append(name)
    return tuple(fitting), tuple(refused)


def _stored_bytes(names: Iterable[str]) -> int:
    return sum(len(name.encode()) + NAME_OVERHEAD_BYTES for name in names)
