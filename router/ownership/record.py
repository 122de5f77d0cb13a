"""Arrival rows: each names the manifest that owns its file, or the reason why the file is ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.faults import NO_ANSWER, NoAnswer
from lake.ledger import ArrivalRow, Ledger
from router.ownership.count_ignored import is_data
from router.ownership.outcome import UNANSWERED, ArrivalOutcome, Ownership
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from router.ownership.draft import Draft, RoutedArrival


@dataclass(frozen=True, slots=True)
class RowStamp:
    """The times of the arrival rows that one invocation writes."""

    recorded_at: str
    """ISO 8601, UTC."""
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
    ledger: Ledger, pool: ThreadPoolExecutor, drafts: Sequence[Draft], ownership: Ownership, stamp: RowStamp
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
        unconfirmed = [arrival.file for arrival, row in rows if row is NO_ANSWER]
        ownership.set_outcome(files, ArrivalOutcome.UNSETTLED if unconfirmed else ArrivalOutcome.OWNED)
        ownership.set_outcome(unconfirmed, ArrivalOutcome.UNSETTLED)
        if files and not unconfirmed:
            recorded.append(RecordedDraft(draft, files))
        owned_elsewhere += [row for _, row in rows if row is not NO_ANSWER and row.manifest != draft.id]
    ownership.set_outcome((row.file for row in owned_elsewhere), ArrivalOutcome.UNSETTLED)
    return recorded, owned_elsewhere


def record_ignored(
    ledger: Ledger,
    pool: ThreadPoolExecutor,
    ignored: Mapping[ObjectVersion, str],
    ownership: Ownership,
    stamp: RowStamp,
) -> list[ArrivalRow]:
    """Write the arrival rows of ignored files; the rows of those that an earlier decision gave to a manifest."""
    rows = [
        ArrivalRow(file, None, None, None, reason, stamp.recorded_at, stamp.expiry(file))
        for file, reason in ignored.items()
    ]
    confirmed = pool.map(lambda row: _confirmed(ledger, row, ledger.arrivals.put), rows)
    owned_elsewhere = []
    for row, current in zip(rows, confirmed, strict=True):
        is_ignored = current is not NO_ANSWER and current.manifest is None
        ownership.set_outcome([row.file], ArrivalOutcome.IGNORED if is_ignored else ArrivalOutcome.UNSETTLED)
        if current is row and is_data(row.file.key):
            ownership.newly_ignored[row.file] = row.reason
        if current is not NO_ANSWER and not is_ignored:
            owned_elsewhere.append(current)
    return owned_elsewhere


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
