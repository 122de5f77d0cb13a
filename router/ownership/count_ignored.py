"""Files that are IGNORED are counted by reason, so that ``failures`` and ``status`` show them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from lake.settings.records import FAILED_RECORDS
from router.ownership.outcome import UNANSWERED, Ownership
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.ledger import Ledger
    from lake.manifest import ObjectVersion
    from router.ownership.record import RecordedDraft

MARKERS = ("_", ".")
"""What names begin with that are not data, such as ``_SUCCESS``."""


def is_data(key: str) -> bool:
    """Whether a person wants to know that the file was ignored: records of Firehose's errors have a list of theirs."""
    name = key.rpartition("/")[2]
    return bool(name) and not name.startswith(MARKERS) and not key.startswith(FAILED_RECORDS)


def count_ignored(ledger: Ledger, ownership: Ownership, adopted: Iterable[RecordedDraft], now: datetime) -> None:
    """Count the files that became IGNORED, and no longer count those that were and have an owner now.

    A write without an answer is logged: only a number for people is wrong.
    """
    groups: dict[str, list[ObjectVersion]] = {}
    for file, reason in ownership.newly_ignored.items():
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
