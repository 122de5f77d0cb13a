"""Execution rows: plan, engine switch and verdict of each night and each backfill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.ledger.table import Condition, Key, RefusedError

if TYPE_CHECKING:
    from lake.ledger.table import LedgerTable


class Executions:
    """One row per execution of ``overnight`` or ``backfill``: its plan, its engine switch and its verdict."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def record(self, execution: str, part: str, facts: dict[str, Any]) -> None:
        """Store or overwrite one part: ``plan``, ``refused_switch`` or ``verdict``.

        ``facts`` are nested under the part: a count named ``open`` must not become a key of the index.
        """
        self._table.update(Key("execution", execution), assign={part: facts})

    def switch_engine(self, execution: str, facts: dict[str, Any]) -> bool:
        """Store which engine takes what is left of the execution; False: it was switched before.

        An execution is switched once: of many callers at the same time the first one decides.
        """
        conditions = [Condition("switch", "missing")]
        try:
            self._table.update(Key("execution", execution), assign={"switch": facts}, conditions=conditions)
        except RefusedError:
            return False
        return True

    def get(self, execution: str) -> dict[str, Any] | None:
        """All recorded parts by a strongly consistent read; None: the execution is unknown."""
        return self._table.get(Key("execution", execution))
