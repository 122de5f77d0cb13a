"""Dataset rows: known columns, and what their conversions measured.

Each dataset has partition keys of its own, so that no number of them shares one's throughput. Its columns, which may be
hundreds of kilobytes, are an item that changes only when a column is new; what every conversion changes is a small one.
A third one, in a partition key of all datasets, is the name: it is written once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lake.ledger.batch_reads import MAX_BATCH_KEYS, batches_of
from lake.ledger.column_room import ColumnHistory, divide_by_room
from lake.ledger.dataset_limit import DATASET_NAMES, claimed_by, folder_of_dataset, name_key
from lake.ledger.dataset_speed import NO_SAMPLES, SpeedSample, SpeedSamples, decode_samples, encode_samples
from lake.ledger.table import Condition, Key, RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import date

    from lake.ledger.table import LedgerTable

CATALOG = Key("catalog", "catalog")
FIRST_NAME = "a"
AFTER_LAST_NAME = "{"
"""Names of datasets are between them: they begin with a lower case letter."""
ROWS_PER_READ = MAX_BATCH_KEYS // 2
"""Datasets of one read: two items of each."""


@dataclass(frozen=True, slots=True)
class DatasetSpeed:
    """Input bytes as stored per second and core; None: no file of this kind has been converted."""

    plain: float | None
    compressed: float | None
    """Of compressed files: a stored byte of them takes several times as long."""


@dataclass(frozen=True, slots=True)
class DatasetMeasurement:
    """What the conversion of one manifest measured."""

    input_bytes: int
    """Size, as stored, of its files."""
    output_bytes: int
    """Size of their Parquet files."""
    task_milliseconds: int
    """Time of their tasks, summed over cores."""
    compressed_bytes: int = 0
    """The part of ``input_bytes`` in files that the reader found to be compressed ..."""
    compressed_milliseconds: int = 0
    """... and of ``task_milliseconds`` for them."""


@dataclass(frozen=True, slots=True)
class MeasuredDataset:
    """What the conversions of a dataset measured."""

    input_bytes: int = 0
    output_bytes: int = 0
    plain: SpeedSamples = NO_SAMPLES
    compressed: SpeedSamples = NO_SAMPLES

    @property
    def output_ratio(self) -> float | None:
        """Parquet bytes per input byte; None before the first conversion."""
        return self.output_bytes / self.input_bytes if self.input_bytes else None

    @property
    def speed(self) -> DatasetSpeed:
        """The two kinds of files apart.

        A forecast knows names and no content. Compressed files without such a name are forecast as plain ones, so
        where no plain file was measured, compressed ones stand for them.
        """
        compressed = self.compressed.median
        return DatasetSpeed(self.plain.median or compressed, compressed)


NO_HISTORY = ColumnHistory()


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """What the ledger knows of a dataset."""

    name: str
    columns: tuple[str, ...]
    """Known column names, sorted; names are only ever added."""
    measured: MeasuredDataset
    history: ColumnHistory = NO_HISTORY

    def column_limit(self, column_limit: int, today: date) -> int:
        """How many columns it may have today (UTC), at most ``column_limit``."""
        return self.history.limit(len(self.columns), column_limit, today)

    @property
    def output_ratio(self) -> float | None:
        """Parquet bytes per input byte; None before the first conversion."""
        return self.measured.output_ratio


class Datasets:
    """Dataset rows, and the list of their names."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def admit(self, name: str, max_datasets: int, named: Collection[str], folder: str | None = None) -> str | None:
        """The folder whose files the dataset has; None: ``max_datasets`` others have been let in.

        ``folder`` gets it if no other one has it; None: the folder of its own name. ``named`` are datasets that do not
        count. Idempotent.
        """
        others = (other for other in self.names() if other not in named)
        return claimed_by(self._table, name, name if folder is None else folder, max_datasets, others)

    def folder(self, name: str) -> str | None:
        """The folder whose files the dataset has, by a strongly consistent read; None: no key has created it."""
        return folder_of_dataset(self._table, name)

    def register(self, name: str) -> None:
        """Put the name among those of all datasets; a name that is there is only read. Idempotent."""
        if not self.is_known(name):
            self._table.update(name_key(name), assign={"name": name})

    def is_known(self, name: str) -> bool:
        """Whether the dataset is registered, by a strongly consistent read."""
        return self._table.get(name_key(name)) is not None

    def get(self, name: str) -> DatasetRow | None:
        """The row by strongly consistent reads; None: the dataset is unknown."""
        columns, measured = self._table.get(_columns_key(name)), self._table.get(_measurement_key(name))
        if columns is None and measured is None and not self.is_known(name):
            return None
        return _dataset(name, columns, measured)

    def names(self) -> Iterator[str]:
        """Names of all known datasets, sorted; memory holds one page of them."""
        return (item["sk"] for item in self._table.query(DATASET_NAMES))

    def speed(self, name: str) -> DatasetSpeed:
        """Measured speed of a dataset, by one strongly consistent read."""
        return _measurement(self._table.get(_measurement_key(name))).speed

    def speeds(self) -> dict[str, DatasetSpeed]:
        """Measured speeds of the datasets that have been converted."""
        speeds = {}
        for names in batches_of(self.names()):
            rows = self._table.get_many([_measurement_key(name) for name in names])
            for name, row in zip(names, rows, strict=True):
                speed = _measurement(row).speed
                if speed.plain is not None or speed.compressed is not None:
                    speeds[name] = speed
        return speeds

    def following(self, name: str) -> Iterator[DatasetRow]:
        """The datasets after ``name``, sorted, a few at a time; empty: all of them."""
        items = self._table.query(DATASET_NAMES, after=name or FIRST_NAME, before=AFTER_LAST_NAME)
        for names in batches_of((item["sk"] for item in items if item["sk"] != name), ROWS_PER_READ):
            keys = [key(dataset) for dataset in names for key in (_columns_key, _measurement_key)]
            rows = self._table.get_many(keys)
            for number, dataset in enumerate(names):
                yield _dataset(dataset, rows[2 * number], rows[2 * number + 1])

    def catalog_position(self) -> str:
        """Name of the dataset after which ``catalog`` continues; empty: it begins from the first one."""
        return str((self._table.get(CATALOG) or {}).get("after", ""))

    def record_catalog_position(self, name: str) -> None:
        """Set it, for the next invocation."""
        self._table.update(CATALOG, assign={"after": name})

    def reserve_columns(
        self, name: str, columns: Iterable[str], column_limit: int, today: date | None = None
    ) -> tuple[str, ...]:
        """Add the column names for which the dataset has room, in order; returns those that were refused.

        ``today`` (UTC) also limits the new columns of a day (``column_room.ColumnHistory``); None for columns that are
        committed. Idempotent. After a refusal the dataset is full (``column_room.is_full``). Concurrent callers share
        the room: each refused write means that another caller has added a name, so the loop ends.
        """
        names = tuple(columns)
        key = _columns_key(name)
        while names:
            item = self._table.get(key)
            known, history = _columns(item), _history(item)
            limit = column_limit if today is None else history.limit(len(known), column_limit, today)
            fitting, refused = divide_by_room(known, names, limit)
            if not fitting:
                return refused
            seen = Condition("columns", "size", len(known)) if known else Condition("columns", "missing")
            try:
                assign = {} if today is None else asdict(history.on(today, len(known)))
                self._table.update(key, assign=assign, add={"columns": set(fitting)}, conditions=[seen])
            except RefusedError:
                continue
            return refused
        return ()

    def drop_columns(self, name: str, columns: Collection[str], dropped: Collection[str]) -> bool:
        """Remove names from ``columns``, which the dataset has; False: it has got others meanwhile."""
        left = set(columns).difference(dropped)
        seen = [Condition("columns", "size", len(columns))]
        try:
            if left:
                self._table.update(_columns_key(name), assign={"columns": left, "before": len(left)}, conditions=seen)
            else:
                self._table.update(_columns_key(name), remove=("columns",), assign={"before": 0}, conditions=seen)
        except RefusedError:
            return False
        return True

    def add_measurement(self, name: str, measured: DatasetMeasurement) -> None:
        """Add the measurement of one conversion; one write unit, and one read.

        A client's retry can add it twice, and of two concurrent callers one can lose its sample of the speed: accurate
        enough for a ratio and a median.
        """
        key = _measurement_key(name)
        found = _measurement(self._table.get(key))
        plain = SpeedSample(
            measured.input_bytes - measured.compressed_bytes,
            measured.task_milliseconds - measured.compressed_milliseconds,
        )
        compressed = SpeedSample(measured.compressed_bytes, measured.compressed_milliseconds)
        speeds = {
            "plain": encode_samples(found.plain.add(plain)),
            "compressed": encode_samples(found.compressed.add(compressed)),
        }
        totals = {"input_bytes": measured.input_bytes, "output_bytes": measured.output_bytes}
        self._table.update(key, assign=speeds, add=totals)


def _columns_key(name: str) -> Key:
    return Key(f"dataset#{name}", "columns")


def _measurement_key(name: str) -> Key:
    return Key(f"dataset#{name}", "measurement")


def _columns(item: dict[str, Any] | None) -> tuple[str, ...]:
    return () if item is None else tuple(sorted(item.get("columns", ())))


def _dataset(name: str, columns: dict[str, Any] | None, measured: dict[str, Any] | None) -> DatasetRow:
    return DatasetRow(name, _columns(columns), _measurement(measured), _history(columns))


def _history(item: dict[str, Any] | None) -> ColumnHistory:
    found = item or {}
    return ColumnHistory(found.get("first_day", ""), found.get("day", ""), int(found.get("before", 0)))


def _measurement(item: dict[str, Any] | None) -> MeasuredDataset:
    found = item or {}
    return MeasuredDataset(
        int(found.get("input_bytes", 0)),
        int(found.get("output_bytes", 0)),
        decode_samples(found.get("plain")),
        decode_samples(found.get("compressed")),
    )
