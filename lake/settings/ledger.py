"""Settings of the ledger: ``ledger``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.errors import InvalidSettingsError
from lake.settings.checks import check_range

if TYPE_CHECKING:
    from datetime import datetime

    from lake.settings.sweep import SweepSettings

MAX_REDELIVERY_DAYS = 28
"""An event is at most 14 days in the queue, and then as long among the dead letters (``infra/arrivals.py``)."""
CLOCK_MARGIN = timedelta(days=1)
"""Of the time of an arrival, which is S3's, and that of its row, which is the function's."""
WAY_BACK = 7
"""Days in which a person has time to act on what waits for the last redelivery or listing."""


def min_keep_days(sweep: SweepSettings) -> int:
    """Days for which a file and the row of its arrival are needed: redelivery or the sweep may still look for them."""
    round_hours = 24 * sweep.listing_days + sweep.listing_hours + sweep.missed_minutes / 60
    return max(MAX_REDELIVERY_DAYS, math.ceil(round_hours / 24), math.ceil(sweep.stalled_hours / 24)) + WAY_BACK


def check_keep_days(key: str, days: int, sweep: SweepSettings) -> None:
    """Raise ``InvalidSettingsError`` if files or rows would expire while redelivery or the sweep may look for them."""
    minimum = min_keep_days(sweep)
    if 0 < days < minimum:
        expected = (
            f"expected 0 (never deleted) or at least {minimum}: an event can be redelivered for {MAX_REDELIVERY_DAYS} "
            "days, and the sweep looks back by sweep.listing_days and sweep.stalled_hours"
        )
        raise InvalidSettingsError(key, days, expected)


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """How long the ledger remembers."""

    keep_days: int = 0
    """Days after which DynamoDB may delete the row of an arrival; 0: never. A file that arrived before is never taken
    as new, and a backfill of its hour is refused. The input bucket has to keep versions: rows of files without a
    version, and of manifests, are always kept."""

    def __post_init__(self) -> None:
        check_range("ledger.keep_days", self.keep_days, 0, 36_500)

    def check_versions(self, bucket: str, status: str | None) -> None:
        """Raise ``InvalidSettingsError`` if rows should expire and the input bucket keeps no versions.

        ``status`` is that of GetBucketVersioning; None: versions were never switched on.
        """
        if self.keep_days and status != "Enabled":
            raise InvalidSettingsError(
                "ledger.keep_days",
                self.keep_days,
                f"the input bucket {bucket} keeps no versions, so its rows never expire, because the same bytes can be "
                "put again and are the same file: switch versions on, or set 0",
            )

    def expiry(self, recorded_at: datetime) -> int | None:
        """Seconds since the epoch after which a row of this time (aware) may be deleted; None: never."""
        if not self.keep_days:
            return None
        return int((recorded_at + timedelta(days=self.keep_days)).timestamp())

    def oldest_arrival(self, now: datetime) -> datetime | None:
        """The row of a file that arrived before this may have been deleted at ``now`` (aware); None: of none."""
        return now - timedelta(days=self.keep_days) + CLOCK_MARGIN if self.keep_days else None
