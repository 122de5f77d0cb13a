"""The answer of ``reprocess``: counts of manifests, totals of what was queued, and messages for people."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from lake.ledger import ManifestRow

MAX_MESSAGES = 50
"""Maximum number of messages in one answer."""
MAX_MESSAGE_CHARACTERS = 600
"""Reasons quote errors, whose length nothing limits. With 6 bytes to an escaped character all messages of an answer are
below the 256 KiB of a state's result (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html)."""
COUNTS = ("queued", "open", "repeated", "converted", "ignored", "unusable", "unknown")
"""Manifests by outcome; ``unknown`` and ``ignored`` also count files that have no manifest."""
TOTALS = (*COUNTS, "files", "bytes")
"""``files`` and ``bytes`` are those of the queued manifests."""


@dataclass(slots=True)
class ReprocessReport:
    """Collects the totals of a request over all its invocations, and the messages of one of them."""

    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0))
    datasets: set[str] = field(default_factory=set)
    """Of the queued manifests."""
    first: str | None = None
    """Their first hour, ``YYYY-MM-DDTHH``; None: nothing was queued."""
    last: str | None = None
    """Their last hour."""
    after: str = ""
    """Key after which the listing of a selection continues."""
    messages: list[str] = field(default_factory=list)

    def add(self, name: str, message: str | None) -> None:
        """Add one to the count ``name``, and a message about it, or none."""
        self.totals[name] += 1
        if message is not None:
            self.messages.append(message[:MAX_MESSAGE_CHARACTERS])

    def add_queued(self, row: ManifestRow, message: str) -> None:
        """Add a manifest that is queued; in a dry run, one that would be."""
        self.add("queued", message)
        self.totals["files"] += row.files
        self.totals["bytes"] += row.bytes
        self.datasets.add(row.partition.dataset)
        stamp = row.partition.stamp
        self.first = min(self.first or stamp, stamp)
        self.last = max(self.last or stamp, stamp)

    def answer(self, *, dry_run: bool, request: str, complete: bool) -> dict[str, Any]:
        """As the function returns it: ``token`` is None when the whole selection was visited."""
        return {
            "dryRun": dry_run,
            "request": request,
            "token": None if complete else self._token(),
            **self.totals,
            "selection": self._selection(),
            "messages": self.messages[:MAX_MESSAGES],
            "omitted": max(len(self.messages) - MAX_MESSAGES, 0),
        }

    @classmethod
    def continuing(cls, token: str | None) -> ReprocessReport:
        """The report of the invocation that returned ``token``, without its messages; None begins a new one.

        Raises
        ------
        InvalidInputError
            ``token`` is not one that the function returned.
        """
        if token is None:
            return cls()
        try:
            values = json.loads(urlsafe_b64decode(token))
            return cls({**values["totals"]}, set(values["datasets"]), values["first"], values["last"], values["after"])
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(
                "token is not one that reprocess has returned: leave it out to start from the beginning"
            ) from error

    def _token(self) -> str:
        values = {
            "totals": self.totals,
            "datasets": sorted(self.datasets),
            "first": self.first,
            "last": self.last,
            "after": self.after,
        }
        return urlsafe_b64encode(json.dumps(values).encode()).decode()

    def _selection(self) -> dict[str, str] | None:
        """Input of ``overnight`` that includes every queued manifest; None: nothing was queued."""
        if self.first is None or self.last is None:
            return None
        dataset = {"dataset": min(self.datasets)} if len(self.datasets) == 1 else {}
        return {**dataset, "from": self.first, "to": self.last}
