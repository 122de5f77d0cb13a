"""Iceberg tables: a row for each table, and the outbox of what a batch may have to bring into it.

A table is a projection of the ledger; docs/exactly-once.md describes the batches that bring generations into it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from lake.documents import decode_partial, encode
from lake.ledger.manifest_row import CommitReference, ManifestRow
from lake.ledger.table import NEW, Condition, Key, Rows, same
from lake.manifest import Partition
from lake.time import iso_utc

OUTBOX = "outbox"
"""Partition key of the index; ``open_order`` begins with the dataset."""
PAGE_ITEMS = 100
"""Entries in one read of the index; often each belongs to another table."""
EXPIRY_ENTRY = "expiry"
"""Name of the entry for a batch that only expires snapshots."""
_GENERATION = re.compile(r"(.+)#g([0-9]+)")


@dataclass(frozen=True, slots=True)
class TableRow:
    dataset: str
    uuid: str
    """Id in the table's metadata; a different table with its name is refused."""
    first: int = 0
    """Number of the last batch of the previous table; 0 if this is the dataset's first table."""
    applied: int = 0
    """Number of the last batch whose marks are all written."""
    pending: CommitReference | None = None
    """The next batch; any process can finish it."""
    oldest: int = 0
    """The lowest batch that a retained snapshot shows. It only grows."""
    stopped: str | None = None
    """Why nothing is brought into the table until a person decides; None if it is not stopped."""
    unlisted: bool = False
    """Whether the outbox may still lack hours of the dataset; a new table needs all hours."""
    cleaned_at: str = ""
    """ISO 8601, UTC: the sweep's last search for metadata files that nothing needs; empty before the first one."""
    optimizer_role: str = ""
    """ARN of the role with which Glue's table optimizer compacts the table; empty if it is not compacted."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One task of a batch: a generation of a manifest, a whole hour, or only the expiry of snapshots."""

    dataset: str
    name: str
    listed_at: str

    @property
    def manifest(self) -> tuple[str, int] | None:
        """Manifest id and generation; None for an hour or ``EXPIRY_ENTRY``."""
        found = _GENERATION.fullmatch(self.name)
        return (found[1], int(found[2])) if found else None

    @property
    def is_hour(self) -> bool:
        return self.manifest is None and self.name != EXPIRY_ENTRY

    @property
    def hour(self) -> Partition:
        """The hour whose files are all to be brought into the table again."""
        return Partition.parse(f"{self.dataset}#{self.name}")


class Tables(Rows):
    def get(self, dataset: str) -> TableRow | None:
        """The row by a strongly consistent read; None if the dataset has no table yet."""
        item = self._table.get(_key(dataset))
        return None if item is None else _row(dataset, item)

    def get_many(self, datasets: Sequence[str]) -> list[TableRow]:
        """The existing rows of at most ``MAX_BATCH_KEYS`` different datasets, by one consistent read."""
        items = self._table.get_many([_key(dataset) for dataset in datasets])
        return [_row(name, item) for name, item in zip(datasets, items, strict=True) if item is not None]

    def create(self, dataset: str, uuid: str) -> TableRow:
        """Create the row of a table that is about to be created; returns the existing row if there is one."""
        row = TableRow(dataset, uuid, unlisted=True)
        found = None if self._table.put(_key(dataset), encode(row)) else self.get(dataset)
        return found or row

    def replace(self, row: TableRow, uuid: str) -> bool:
        """Replace the row's table by a new one, which is empty. False: the row has changed.

        The numbers of batches continue, so that no manifest has a mark with a higher number.
        """
        applied = row.applied + (row.pending is not None)
        changes = {"uuid": uuid, "applied": applied, "first": applied, "oldest": applied, "unlisted": True}
        return self._change(row, changes, ("pending", "stopped", "optimizer_role"))

    def intend(self, row: TableRow, batch: CommitReference) -> bool:
        """Decide the next batch. False: another process has decided one."""
        return self._change(row, {"pending": asdict(batch)}, ())

    def close(self, row: TableRow, number: int, oldest: int) -> None:
        """Record that all marks of the batch are written. Idempotent."""
        conditions = same(uuid=row.uuid, applied=number - 1)
        assign = {"applied": number, "oldest": max(row.oldest, oldest)}
        self._table.update(_key(row.dataset), assign=assign, remove=("pending", "stopped"), conditions=conditions)

    def stop(self, row: TableRow, reason: str | None) -> bool:
        """Record why nothing is brought into the table, or None to clear it. False: another table has its name."""
        if reason == row.stopped:
            return True
        assign, remove = ({}, ("stopped",)) if reason is None else ({"stopped": reason}, ())
        return self._table.update_once(_key(row.dataset), assign, remove, same(uuid=row.uuid))

    def note(self, row: TableRow, **changes: Any) -> None:  # noqa: ANN401
        """Assign attributes, and remove those with the value None. Does nothing if another table replaced this one."""
        assign = {name: value for name, value in changes.items() if value is not None}
        removed = tuple(name for name in changes if name not in assign)
        self._table.update(_key(row.dataset), assign=assign, remove=removed, conditions=same(uuid=row.uuid))

    def list_generation(self, dataset: str, manifest: str, generation: int, now: datetime) -> bool:
        """List a generation before it becomes DONE, so that no crash loses it. False: it is listed already."""
        return self._list(dataset, generation_entry(manifest, generation), now, NEW)

    def list_hour(self, hour: Partition, now: datetime) -> None:
        self._list(hour.dataset, hour.stamp, now)

    def list_expiry(self, dataset: str, now: datetime) -> None:
        self._list(dataset, EXPIRY_ENTRY, now, NEW)

    def _list(self, dataset: str, name: str, now: datetime, conditions: Sequence[Condition] = ()) -> bool:
        """List an entry. ``conditions`` can keep an existing one with its age, which the alarm measures."""
        listed = {"open": OUTBOX, "open_order": f"{dataset}#{name}", "listed_at": iso_utc(now)}
        return self._table.update(Key(_outbox(dataset), name), assign=listed, conditions=conditions)

    def outbox(self, dataset: str) -> Iterator[OutboxEntry]:
        """The entries of a dataset, by a strongly consistent query: hours first, then manifests, oldest first."""
        return map(_entry, self._table.query(_outbox(dataset)))

    def waiting(self) -> Iterator[OutboxEntry]:
        """The first entry of each dataset that has any, from the index: a hint.

        Further entries of the dataset are skipped after ``PAGE_ITEMS``.
        """
        after, dataset = "a", ""
        while True:
            entries = self._table.query(OUTBOX, after=after, before="{", index=True, page_items=PAGE_ITEMS)
            page = [_entry(item) for item in islice(entries, PAGE_ITEMS)]
            for entry in page:
                if entry.dataset != dataset:
                    dataset = entry.dataset
                    yield entry
            if len(page) < PAGE_ITEMS:
                return
            after = f"{dataset}#{{"

    def forget(self, dataset: str, name: str, listed_at: str | None = None) -> None:
        """Delete an entry whose generation is in the table, or can never be. Idempotent.

        With ``listed_at`` it stays if it was listed again since, as a rebuild of the table does with hours.
        """
        unchanged = [] if listed_at is None else same(listed_at=listed_at)
        self._table.delete(Key(_outbox(dataset), name), unchanged)

    def _change(self, row: TableRow, changes: dict[str, Any], remove: tuple[str, ...]) -> bool:
        conditions = same(uuid=row.uuid, applied=row.applied)
        if row.pending is None:
            conditions += same(pending=None)
        return self._table.update_once(_key(row.dataset), changes, remove, conditions)


def with_current_mark(row: ManifestRow, table: TableRow | None) -> ManifestRow:
    """The row without a mark of an earlier table, which ``table`` has replaced; ``table`` was read after it. Pure."""
    is_earlier = table is not None and row.tabled is not None and row.tabled.batch <= table.first
    return replace(row, tabled=None) if is_earlier else row


def generation_entry(manifest: str, generation: int) -> str:
    return f"{manifest}#g{generation}"


def _key(dataset: str) -> Key:
    return Key(f"table#{dataset}", "table")


def _outbox(dataset: str) -> str:
    return f"{OUTBOX}#{dataset}"


def _entry(item: dict[str, Any]) -> OutboxEntry:
    return OutboxEntry(item["pk"].removeprefix(_outbox("")), item["sk"], item["listed_at"])


def _row(dataset: str, item: dict[str, Any]) -> TableRow:
    return decode_partial(TableRow(dataset, ""), item)
