"""The answer to a request: counts, and messages for people."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
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
PROMOTE_COUNTS = ("promoted", "inStream", "tooLate", "notMoved", "ignored", "notRouted", "unknown", "manifests")
"""Object versions by outcome; ``unknown`` counts requested URIs, ``manifests`` new manifests of the stream lane."""
REPROCESS_COUNTS = ("queued", "open", "repeated", "converted", "ignored", "unusable", "unknown", "files", "bytes")
"""Manifests by outcome; ``unknown`` and ``ignored`` also count files that have no manifest. ``files`` and ``bytes`` are
those of the queued manifests."""


@dataclass(slots=True)
class Report:
    """Collects the counts of a request over all its invocations, and the messages of one of them."""

    names: tuple[str, ...]
    """The counts that an answer has."""
    counts: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, message: str | None) -> None:
        """Add ``number`` to the count ``name``, and a message about them, or none."""
        self.counts[name] += number
        if message is not None:
            self.messages.append(message[:MAX_MESSAGE_CHARACTERS])

    def answer(self, *, dry_run: bool) -> dict[str, Any]:
        """As a function returns it: the first ``MAX_MESSAGES`` messages, and the number of ``omitted`` ones."""
        return {
            "dryRun": dry_run,
            **{name: self.counts[name] for name in self.names},
            "messages": self.messages[:MAX_MESSAGES],
            "omitted": max(len(self.messages) - MAX_MESSAGES, 0),
        }


@dataclass(slots=True)
class ReprocessReport(Report):
    """A report that continues over several invocations, with the hours of what was queued."""

    names: tuple[str, ...] = REPROCESS_COUNTS
    datasets: set[str] = field(default_factory=set)
    """The datasets of the queued manifests."""
    first: str | None = None
    """Their first hour, ``YYYY-MM-DDTHH``; None: nothing was queued."""
    last: str | None = None
    """Their last hour."""
    after: str = ""
    """Key after which the listing of a selection continues."""

    def add_queued(self, row: ManifestRow, message: str) -> None:
        """Add a manifest that is queued; in a dry run, one that would be."""
        self.add("queued", 1, message)
        self.counts.update(files=row.files, bytes=row.bytes)
        self.datasets.add(row.partition.dataset)
        stamp = row.partition.stamp
        self.first = min(self.first or stamp, stamp)
        self.last = max(self.last or stamp, stamp)

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
            values |= {"counts": Counter(values["counts"]), "datasets": set(values["datasets"])}
            return cls(**values)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(
                "token is not one that reprocess has returned: leave it out to start from the beginning"
            ) from error

    def token(self) -> str:
        """Opaque text by which the next invocation continues."""
        names = ("counts", "first", "last", "after")
        values = {"datasets": sorted(self.datasets), **{name: getattr(self, name) for name in names}}
        return urlsafe_b64encode(json.dumps(values).encode()).decode()

    def selection(self) -> dict[str, str] | None:
        """Input of ``overnight`` that includes every queued manifest; None: nothing was queued."""
        if self.first is None or self.last is None:
            return None
        dataset = {"dataset": min(self.datasets)} if len(self.datasets) == 1 else {}
        return {**dataset, "from": self.first, "to": self.last}
