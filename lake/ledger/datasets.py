"""Dataset rows: known columns, and what their conversions measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.ledger.column_room import divide_by_room
from lake.ledger.dataset_limit import is_admitted
from lake.ledger.table import Condition, Key, RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from lake.ledger.table import LedgerTable

CATALOG = Key("catalog", "catalog")
FIRST_NAME = "a"
AFTER_LAST_NAME = "{"
"""Names of datasets are between them: they begin with a lower case letter."""


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """What the ledger knows of a dataset."""

    name: str
    columns: tuple[str, ...]
    """Known column names, sorted; names are only ever added."""
    input_bytes: int
    """Size, as stored, of the files converted so far."""
    output_bytes: int
    """Size of their Parquet files."""
    task_milliseconds: int
    """Time of their tasks, summed over cores."""

    @property
    def output_ratio(self) -> float | None:
        """Parquet bytes per input byte; None before the first conversion."""
        return self.output_bytes / self.input_bytes if self.input_bytes else None

    @property
    def bytes_per_second(self) -> float | None:
        """Input bytes per second and core; None before the first conversion."""
        return self.input_bytes * 1000 / self.task_milliseconds if self.task_milliseconds else None


class Datasets:
    """Dataset rows: one query lists them all."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def admit(self, name: str, max_datasets: int, named: Collection[str]) -> bool:
        """Whether a dataset may have manifests: it had, or fewer than ``max_datasets`` others have been let in.

        ``named`` are datasets that do not count. Idempotent.
        """
        return is_admitted(self._table, name, max_datasets, (other for other in self.names() if other not in named))

    def register(self, name: str) -> None:
        """Create the dataset's row; idempotent."""
        self._table.update(Key("dataset", name), add={"seen": 0})

    def get(self, name: str) -> DatasetRow | None:
        """The row by a strongly consistent read; None: the dataset is unknown."""
        item = self._table.get(Key("dataset", name))
        return None if item is None else _dataset(item)

    def names(self) -> Iterator[str]:
        """Names of all known datasets, sorted; memory holds one page of their rows."""
        return (item["sk"] for item in self._table.query("dataset"))

    def all(self) -> list[DatasetRow]:
        """All known datasets, sorted by name."""
        return [_dataset(item) for item in self._table.query("dataset")]

    def following(self, name: str) -> Iterator[DatasetRow]:
        """The datasets after ``name``, sorted, page by page; empty: all of them."""
        items = self._table.query("dataset", after=name or FIRST_NAME, before=AFTER_LAST_NAME)
        return (_dataset(item) for item in items if item["sk"] != name)

    def catalog_position(self) -> str:
        """Name of the dataset after which ``catalog`` continues; empty: it begins from the first one."""
        return str((self._table.get(CATALOG) or {}).get("after", ""))

    def record_catalog_position(self, name: str) -> None:
        """Set it, for the next invocation."""
        self._table.update(CATALOG, assign={"after": name})

    def reserve_columns(self, name: str, columns: Iterable[str], column_limit: int) -> tuple[str, ...]:
        """Add the column names for which the dataset has room, in order; returns those that were refused.

        Idempotent; none is ever removed. After a refusal the dataset is full (``column_room.is_full``). Concurrent
        callers share the room: each refused write means that another caller has added a name, so the loop ends.
        """
        names = tuple(columns)
        key = Key("dataset", name)
        while names:
            row = self.get(name)
            known = () if row is None else row.columns
            fitting, refused = divide_by_room(known, names, column_limit)
            if not fitting:
                return refused
            seen = Condition("columns", "size", len(known)) if known else Condition("columns", "missing")
            try:
                self._table.update(key, add={"columns": set(fitting)}, conditions=[seen])
            except RefusedError:
                continue
            return refused
        return ()

    def add_measurement(self, name: str, input_bytes: int, output_bytes: int, task_milliseconds: int) -> None:
        """Add the measurement of one conversion: bytes, bytes, milliseconds.

        A client's retry can add it twice: accurate enough for ratios.
        """
        amounts = {"input_bytes": input_bytes, "output_bytes": output_bytes, "task_milliseconds": task_milliseconds}
        self._table.update(Key("dataset", name), add=amounts)


def _dataset(item: dict[str, Any]) -> DatasetRow:
    return DatasetRow(
        item["sk"],
        tuple(sorted(item.get("columns", ()))),
        item.get("input_bytes", 0),
        item.get("output_bytes", 0),
        item.get("task_milliseconds", 0),
    )
