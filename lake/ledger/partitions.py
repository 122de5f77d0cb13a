"""Partition rows: arrivals by dataset and hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.ledger.table import Key

if TYPE_CHECKING:
    from lake.ledger.table import LedgerTable
    from lake.partition import Partition


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
