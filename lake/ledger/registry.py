"""The ledger's other rows: datasets, partitions, the stream and executions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.ledger.column_room import divide_by_room
from lake.ledger.table import Condition, Key, RefusedError
from lake.time import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from lake.ledger.table import LedgerTable
    from lake.partition import Partition


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

    def register(self, name: str) -> None:
        """Create the dataset's row; idempotent."""
        self._table.update(Key("dataset", name), add={"seen": 0})

    def get(self, name: str) -> DatasetRow | None:
        """The row by a strongly consistent read; None: the dataset is unknown."""
        item = self._table.get(Key("dataset", name))
        return None if item is None else _dataset(item)

    def all(self) -> list[DatasetRow]:
        """All known datasets, sorted by name."""
        return [_dataset(item) for item in self._table.query("dataset")]

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


class Partitions:
    """Partition rows: arrivals per dataset and hour."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def add_arrivals(self, partition: Partition, files: int, size: int) -> None:
        """Add the arrivals of one invocation: number of files, and their size in bytes."""
        key = Key(f"partition#{partition.dataset}", partition.stamp)
        self._table.update(key, add={"files": files, "bytes": size})

    def hours(self, dataset: str, first: str, last: str) -> list[dict[str, Any]]:
        """Rows of a dataset from ``first`` to ``last``, both ``YYYY-MM-DDTHH`` and inclusive."""
        return list(self._table.query(f"partition#{dataset}", after=first, before=last))


@dataclass(frozen=True, slots=True)
class StreamRow:
    """Health of the stream lane, as its job and ``stream_control`` report it."""

    run: str | None = None
    """Job run id of the last heartbeat."""
    heartbeat_at: str | None = None
    """ISO 8601, UTC; None: the last run reported that it ends."""
    stop_requested: bool = False
    """The run is to end between two micro-batches."""
    spilling: bool = False
    """Peak files that are not urgent go to the batch lane, because the backlog is above its high mark."""
    window_until: str | None = None
    """ISO 8601, UTC: end of the last stream window that was opened."""


STREAM_KEY = Key("stream", "stream")


class Stream:
    """The row of the stream lane."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def get(self) -> StreamRow:
        """The row by a strongly consistent read; its defaults before the first write."""
        item = self._table.get(STREAM_KEY) or {}
        return StreamRow(
            item.get("run"),
            item.get("heartbeat_at"),
            bool(item.get("stop_requested", False)),
            bool(item.get("spilling", False)),
            item.get("window_until"),
        )

    def record_heartbeat(self, run: str, now: datetime) -> None:
        """The run is alive at ``now`` (aware)."""
        self._table.update(STREAM_KEY, assign={"run": run, "heartbeat_at": iso_utc(now)})

    def end(self) -> None:
        """The run is about to end: from now on, the next process with work for the stream starts another run."""
        self._table.update(STREAM_KEY, remove=("heartbeat_at",))

    def open_window(self, until: str) -> None:
        """Open a stream window until ``until`` (ISO 8601, UTC), and clear the stop flag."""
        self._table.update(STREAM_KEY, assign={"window_until": until, "stop_requested": False})

    def request_stop(self, requested: bool) -> None:
        """Set or clear the stop flag."""
        self._table.update(STREAM_KEY, assign={"stop_requested": requested})

    def set_spilling(self, spilling: bool) -> None:
        """Set or clear the spilling flag."""
        self._table.update(STREAM_KEY, assign={"spilling": spilling})


class Executions:
    """One row per execution of ``overnight`` or ``backfill``: its plan and its verdict."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def record(self, execution: str, part: str, facts: dict[str, Any]) -> None:
        """Store or overwrite one part, ``plan`` or ``verdict``.

        ``facts`` are nested under the part: a count named ``open`` must not become a key of the index.
        """
        self._table.update(Key("execution", execution), assign={part: facts})

    def get(self, execution: str) -> dict[str, Any] | None:
        """All recorded parts by a strongly consistent read; None: the execution is unknown."""
        return self._table.get(Key("execution", execution))


def _dataset(item: dict[str, Any]) -> DatasetRow:
    return DatasetRow(
        item["sk"],
        tuple(sorted(item.get("columns", ()))),
        item.get("input_bytes", 0),
        item.get("output_bytes", 0),
        item.get("task_milliseconds", 0),
    )
