"""Execution rows: plan and verdict of each night and each backfill."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from lake.ledger.arrivals import EXPIRY
from lake.ledger.table import Key, LedgerTable

SETTLED = "settled-execution"
"""Partition key of the executions in the order in which they were planned."""
SETTLED_FOR = timedelta(days=35)
"""For as long an execution is found by its day; by its name it is found for ever."""


class Executions:
    """One row per execution of ``overnight`` or ``backfill``: its plan and its verdict."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def record(self, execution: str, part: str, facts: dict[str, Any]) -> None:
        """Store or overwrite one part: ``plan`` or ``verdict``.

        ``facts`` are nested under the part: a count named ``open`` must not become a key of the index.
        """
        self._table.update(Key("execution", execution), assign={part: facts})

    def get(self, execution: str) -> dict[str, Any] | None:
        """All recorded parts by a strongly consistent read; None: the execution is unknown."""
        return self._table.get(Key("execution", execution))

    def record_settled(self, execution: str, planned_at: str, facts: dict[str, Any], now: datetime) -> None:
        """Store or overwrite what the list of the last days shows of an execution.

        ``planned_at`` is ISO 8601, UTC; ``now`` is aware.
        """
        expires_at = int((now + SETTLED_FOR).timestamp())
        self._table.update(Key(SETTLED, f"{planned_at}#{execution}"), assign={"facts": facts, EXPIRY: expires_at})

    def settled(self, first: date, last: date) -> Iterator[dict[str, Any]]:
        """The facts of the executions that were planned on these days (UTC, both inclusive), oldest first."""
        for item in self._table.query(SETTLED, after=str(first), before=f"{last}~"):
            yield item["facts"]
