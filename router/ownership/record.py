"""Arrival rows: each names the manifest that owns its file, or the reason why the file is ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lake.faults import NO_ANSWER, NoAnswer
from lake.ledger import ArrivalRow, Ledger
from lake.manifest import ObjectVersion
from lake.settings.records import FAILED_RECORDS
from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from router.ownership.owner import Draft, RoutedArrival


@dataclass(frozen=True, slots=True)
class RowStamp:
    """The times of the arrival rows that one invocation writes."""

    recorded_at: str
    expires_at: int | None
    """Seconds since the epoch after which DynamoDB may delete those that may expire; None: never."""
    input_bucket: str

    def expiry(self, file: ObjectVersion) -> int | None:
        """When the row of a file may be deleted: only a version of the input bucket never arrives again.

        The same bytes can be put again without a version, and a person can repeat a resubmission at any time.
        """
        return self.expires_at if file.version_id is not None and file.bucket == self.input_bucket else None


@dataclass(frozen=True, slots=True)
class RecordedDraft:
    """A draft, and those of its files whose arrival rows name it."""

    draft: Draft
    files: list[ObjectVersion]


def record_drafts(
    ledger: Ledger, pool: ThreadPoolExecutor, drafts: Sequence[Draft], stamp: RowStamp
) -> tuple[list[RecordedDraft], list[ArrivalRow]]:
    """Write the arrival rows of all drafts; the drafts to enqueue, and the rows that name another owner.

    A draft with an unconfirmed row is not enqueued: that row may still be written late, and must never name a manifest
    that does not list its file.
    """
    writes = [
        [(arrival, pool.submit(_write_row, ledger, draft, arrival, stamp)) for arrival in draft.arrivals]
        for draft in drafts
    ]
    recorded, owned_elsewhere = [], []
    for draft, written in zip(drafts, writes, strict=True):
        rows = [(arrival, future.result()) for arrival, future in written]
        files = [arrival.file for arrival, row in rows if row is not NO_ANSWER and row.manifest == draft.id]
        unconfirmed = any(row is NO_ANSWER for _, row in rows)
        if files and not unconfirmed:
            recorded.append(RecordedDraft(draft, files))
        owned_elsewhere += [row for _, row in rows if row is not NO_ANSWER and row.manifest != draft.id]
    return recorded, owned_elsewhere


def record_ignored(
    ledger: Ledger,
    pool: ThreadPoolExecutor,
    ignored: Mapping[ObjectVersion, str],
    stamp: RowStamp,
) -> tuple[list[ArrivalRow], list[ArrivalRow], list[ArrivalRow]]:
    """Write the arrival rows of ignored files; the rows that are new, those that have no owner, new ones among them,
    and those that an earlier decision gave to a manifest.
    """
    rows = [
        ArrivalRow(file, None, None, None, reason, stamp.recorded_at, stamp.expiry(file))
        for file, reason in ignored.items()
    ]
    answers = list(pool.map(lambda row: _confirmed(ledger, row, ledger.arrivals.put), rows))
    # A put whose answer was lost has written an equal row.
    new = [row for row, answer in zip(rows, answers, strict=True) if answer == row]
    current = [answer for answer in answers if answer is not NO_ANSWER]
    return new, [row for row in current if row.manifest is None], [row for row in current if row.manifest is not None]


def _write_row(ledger: Ledger, draft: Draft, arrival: RoutedArrival, stamp: RowStamp) -> ArrivalRow | NoAnswer:
    row = ArrivalRow(
        arrival.file,
        draft.id,
        arrival.partition,
        draft.lane,
        arrival.reason,
        stamp.recorded_at,
        stamp.expiry(arrival.file),
    )
    adopted = arrival.adopted_row
    if adopted is None:
        return _confirmed(ledger, row, ledger.arrivals.put)
    current = _confirmed(ledger, row, lambda row: ledger.arrivals.adopt(adopted, row))
    # The row still has no other owner: the unanswered update may be applied late.
    return NO_ANSWER if current is not NO_ANSWER and current.manifest == adopted.manifest else current


def _confirmed(ledger: Ledger, row: ArrivalRow, write: Callable[[ArrivalRow], ArrivalRow]) -> ArrivalRow | NoAnswer:
    """The current row after a write, by a consistent read where the write has no answer."""
    try:
        return write(row)
    except UNANSWERED as error:
        logger.warning("no answer to the write of an arrival row", uri=row.file.uri, error=str(error))
    try:
        return ledger.arrivals.get(row.file) or NO_ANSWER
    except UNANSWERED:
        return NO_ANSWER


MARKERS = ("_", ".")
"""What names begin with that are not data, such as ``_SUCCESS``."""


def is_data(key: str) -> bool:
    """Whether a person wants to know that the file was ignored: records of Firehose's errors have a list of theirs."""
    name = key.rpartition("/")[2]
    return bool(name) and not name.startswith(MARKERS) and not key.startswith(FAILED_RECORDS)


def count_ignored(
    ledger: Ledger, ignored: Mapping[ObjectVersion, str], adopted: Iterable[RecordedDraft], now: datetime
) -> None:
    """Count the files that became IGNORED, and no longer count those that were and have an owner now.

    A write without an answer is logged: only a number for people is wrong.
    """
    groups: dict[str, list[ObjectVersion]] = {}
    for file, reason in ignored.items():
        groups.setdefault(reason, []).append(file)
    try:
        for reason, files in groups.items():
            ledger.ignored.add(reason, files, now)
        for recorded in adopted:
            owned = set(recorded.files)
            for arrival in recorded.draft.arrivals:
                row = arrival.adopted_row
                if row is not None and row.manifest is None and arrival.file in owned and is_data(arrival.file.key):
                    ledger.ignored.take_back(row.reason, arrival.file)
    except UNANSWERED as error:
        logger.warning("ignored files not counted", reasons=list(groups), error=str(error))
