"""Execution rows: the plan and the verdict of each night and each backfill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.ledger.table import Key

if TYPE_CHECKING:
    from lake.ledger.table import LedgerTable


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
