"""What a request means for a manifest, by the state of its row, and its answer: counts, and messages for people."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lake.errors import InvalidInputError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.texts import advise_reprocess

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

        Raises ``InvalidInputError``: ``token`` is not one that the function returned.
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


class Step(StrEnum):
    """What to do with a manifest, or with the requested files of it."""

    ACT = "act"
    """Do what was requested: move its files to the stream lane, or queue it in its next generation."""
    POINT = "point"
    """Its files wait in the stream lane already: write one more pointer, because the first may be missing."""
    FOLLOW = "follow"
    """Continue with its successors, which hold its files."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class NextStep:
    """The step; for LEAVE also how the manifest or its files are counted, and why, with what to do next."""

    step: Step
    count: str = ""
    """A count of the request's report."""
    why: str = ""


class Only(StrEnum):
    """Which of the selected manifests a reprocess queues again."""

    FAILED = "failed"
    """FAILED ones, and DONE ones with files that could not be read."""
    ALL = "all"
    """Every one that is FAILED or DONE."""


def next_promote_step(row: ManifestRow | None) -> NextStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    A manifest that was tried before is promoted like any other: all attempts are left to its successors, files that
    cannot be read are detected again, and what the stream lane cannot convert goes back to the batch lane.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "notRouted", "being routed right now: promote again in some minutes")
    if row.state in (State.SUPERSEDED, State.COLLECTED):
        return NextStep(Step.FOLLOW)
    if row.state == State.QUEUED and row.lane == Lane.STREAM:
        return NextStep(Step.POINT)
    if row.state == State.QUEUED and row.published is None:
        return NextStep(Step.ACT)
    if row.state == State.QUEUED:
        return NextStep(Step.LEAVE, "notMoved", "to be reprocessed by the batch lane: start overnight to do it now")
    return NextStep(Step.LEAVE, "tooLate", _why_too_late(row))


def _why_too_late(row: ManifestRow) -> str:
    if row.state == State.RUNNING:
        return f"being converted in the {row.lane} lane by run {row.owner}: wait for it"
    if row.state == State.PUBLISHING:
        return "being published: wait a moment"
    if row.state == State.DONE:
        return "converted already: explain shows the result"
    advice = advise_reprocess(row.id)
    return f"FAILED ({(row.reason or '').removesuffix(f'; {advice}')}): {advice}"


def next_reprocess_step(row: ManifestRow | None, only: Only, request: str) -> NextStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    Only a manifest that has ended is queued, and once for each request: a repetition finds its id in the row.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "unknown", "is not in the ledger: check the id; explain shows those of a file")
    if row.state in (State.SUPERSEDED, State.COLLECTED):
        return NextStep(Step.FOLLOW)
    if row.request == request:
        return NextStep(Step.LEAVE, "repeated", f"was queued by this request before and is {row.state} now")
    if row.open:
        return NextStep(Step.LEAVE, "open", _why_open(row))
    if row.state == State.FAILED or only == Only.ALL or has_unreadable_files(row):
        return NextStep(Step.ACT)
    return NextStep(Step.LEAVE, "converted", "is DONE and all of its files were read: pass all to convert it again")


def has_unreadable_files(row: ManifestRow) -> bool:
    """Whether a DONE manifest left files out, which are in the quarantine by reference."""
    return row.state == State.DONE and row.published is not None and row.published.totals.failed_files > 0


def _why_open(row: ManifestRow) -> str:
    if row.state == State.QUEUED:
        return f"waits in the {row.lane} lane already: its next run converts it"
    return f"is {row.state} by run {row.owner}: wait until it has ended"
