"""How many columns a dataset may have: one item of the ledger holds all of their names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_NAME_BYTES = 200
"""Length of the longest column name, which is ASCII (docs/columns.md)."""
NAME_OVERHEAD_BYTES = 4
"""Upper bound of what DynamoDB adds to an element of a set (Developer Guide, "DynamoDB item sizes and formats")."""
MAX_COLUMN_BYTES = 300_000
"""Names with their overhead; an item has at most 400 KB (DynamoDB's "Service quotas")."""


GROWTH = timedelta(days=7)
"""In this time from its first column on a dataset may get all of its columns: wide first files are normal."""
MAX_NEW_A_DAY = 100
"""New columns of an older dataset in a UTC day: one hostile file must not take the room of all later columns."""


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """When a dataset got its columns; days are UTC, YYYY-MM-DD, and empty before the first column."""

    first_day: str = ""
    day: str = ""
    """On which it got the last ones."""
    before: int = 0
    """Columns that it had before this day."""

    def limit(self, columns: int, column_limit: int, today: date) -> int:
        """How many columns the dataset, which has ``columns``, may have today; pure."""
        if not self.first_day or today < date.fromisoformat(self.first_day) + GROWTH:
            return column_limit
        before = self.before if self.day >= today.isoformat() else columns
        return max(min(column_limit, before + MAX_NEW_A_DAY), 1)

    def on(self, today: date, columns: int) -> ColumnHistory:
        """With columns that a dataset which had ``columns`` gets today; pure."""
        if self.day >= today.isoformat():
            return self
        return ColumnHistory(self.first_day or today.isoformat(), today.isoformat(), columns)


def is_full(columns: Collection[str], column_limit: int) -> bool:
    """Whether a dataset with these columns gets no other one: further keys go to ``_rescued``."""
    free_bytes = MAX_COLUMN_BYTES - _stored_bytes(columns)
    return len(columns) >= column_limit or free_bytes < MAX_NAME_BYTES + NAME_OVERHEAD_BYTES


def divide_by_room(
    columns: Collection[str], names: Iterable[str], column_limit: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide the names that a dataset with ``columns`` does not have: those for which it has room, and the others.

    In order: as soon as the dataset is full, every further name is refused.
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
