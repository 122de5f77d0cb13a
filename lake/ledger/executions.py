"""Execution rows: plan, engine switch and verdict of each night and each backfill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.ledger.table import Condition, Key, RefusedError

if TYPE_CHECKING:
    from lake.ledger.table import LedgerTable


NEWEST_PLAN = Key("newest-plan", "newest-plan")


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

    def record_newest_plan(self, facts: dict[str, Any]) -> None:
        """Store what the newest plan has selected, and when; it replaces the one before."""
        self._table.update(NEWEST_PLAN, assign={"plan": facts})

    def newest_plan(self) -> dict[str, Any] | None:
        """What the newest plan has selected; None before the first one."""
        return (self._table.get(NEWEST_PLAN) or {}).get("plan")

    def get(self, execution: str) -> dict[str, Any] | None:
        """All recorded parts by a strongly consistent read; None: the execution is unknown."""
        return self._table.get(Key("execution", execution))
