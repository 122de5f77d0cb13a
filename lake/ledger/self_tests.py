"""The row of the self-test of the alarms: when the last test message was sent, and whether it has come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.ledger.table import Condition, Key, RefusedError
from lake.time import iso_utc

if TYPE_CHECKING:
    from datetime import datetime

    from lake.ledger.table import LedgerTable

SELF_TEST = Key("self-test", "self-test")


@dataclass(frozen=True, slots=True)
class SelfTestRow:
    """The last self-test."""

    sent_at: str | None = None
    """ISO 8601, UTC: when it was begun; None: there has been none."""
    message: str | None = None
    """The id that the topic gave to the message; None: the topic has not taken it."""
    arrived_at: str | None = None
    """ISO 8601, UTC: when the message was found in the queue of the test; None: it was not."""


class SelfTests:
    """The row of the last self-test. One process at a time sends one; another one may look for it."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def get(self) -> SelfTestRow:
        """The row by a strongly consistent read; its defaults before the first test."""
        item = self._table.get(SELF_TEST) or {}
        return SelfTestRow(item.get("sent_at"), item.get("message"), item.get("arrived_at"))

    def begin(self, now: datetime) -> None:
        """A test is about to be sent, at ``now`` (aware); what an earlier one has come to is forgotten."""
        self._table.update(SELF_TEST, assign={"sent_at": iso_utc(now)}, remove=("message", "arrived_at"))

    def record_sent(self, message: str) -> None:
        """The topic has taken the message under this id."""
        self._table.update(SELF_TEST, assign={"message": message})

    def record_arrival(self, message: str, now: datetime) -> bool:
        """The message was found at ``now`` (aware); False: another test has been begun since."""
        fence = [Condition("message", "=", message)]
        try:
            self._table.update(SELF_TEST, assign={"arrived_at": iso_utc(now)}, conditions=fence)
        except RefusedError:
            return False
        return True
