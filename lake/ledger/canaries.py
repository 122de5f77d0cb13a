"""Rows of canaries: each is claimed once, fenced as the row of a manifest, and is no manifest."""

from __future__ import annotations

from datetime import datetime, timedelta

from lake.ledger.arrivals import EXPIRY
from lake.ledger.manifest_row import State
from lake.ledger.table import Condition, Key, LedgerTable, RefusedError

CANARY = "canary"
"""Partition key of all of these rows. No index has them."""


class Canaries:
    """Creates, claims and removes the rows; every method raises botocore's errors."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def create(self, run: str, now: datetime, kept: timedelta) -> None:
        """Create the row; DynamoDB deletes it ``kept`` after ``now`` if nobody does."""
        row = {"state": State.QUEUED, "generation": 1, "attempt": 0, EXPIRY: int((now + kept).timestamp())}
        self._table.put(Key(CANARY, run), row, [Condition("pk", "missing")])

    def claim(self, run: str, owner: str) -> bool:
        """QUEUED to RUNNING; False: it was claimed before."""
        unchanged = [
            Condition("state", "=", State.QUEUED),
            Condition("generation", "=", 1),
            Condition("attempt", "=", 0),
        ]
        changes = {"state": State.RUNNING, "attempt": 1, "owner": owner}
        try:
            self._table.update(Key(CANARY, run), assign=changes, conditions=unchanged)
        except RefusedError:
            return False
        return True

    def owner(self, run: str) -> str | None:
        """Who has claimed the row, by a strongly consistent read."""
        return (self._table.get(Key(CANARY, run)) or {}).get("owner")

    def remove_all(self) -> None:
        """Delete every row of every canary; idempotent."""
        for item in self._table.query(CANARY):
            self._table.delete(Key(CANARY, item["sk"]))
