"""Settings of the repairs: ``sweep``, and how long rows and files are kept: ``ledger``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from lake.errors import InvalidSettingsError
from lake.settings.declaration import Conflict, Range, Unit

MAX_REDELIVERY_DAYS = 28
"""An event is at most 14 days in the queue, and then as long among the dead letters (``infra/arrivals.py``)."""
LISTING_DAYS = 2
"""Minimum window of modification times that a listing for missed events covers; it also reaches back to the last
complete one, so that a longer window would find nothing more."""
PUBLISHING_MINUTES = 60
"""Age at which a manifest that is PUBLISHING is rolled forward: publishing takes seconds, and both may do it."""
POINTER_MINUTES = 15
"""Age at which a QUEUED manifest of the stream lane gets a new pointer: the interval of the sweep. Each one doubles
the next wait."""
STALLED = timedelta(hours=36)
"""Age at which an open manifest is reported: longer than one overnight execution and the day before it."""
CLOCK_MARGIN = timedelta(days=1)
"""Difference between the time of an arrival, which is S3's, and that of its row, which is the function's."""
WAY_BACK = 7
"""Days in which a person has time to act on what waits for the last redelivery or listing."""


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """The age at which ``sweep`` repairs or reports something."""

    grace_minutes: Annotated[
        float,
        Range(0, 10_080),
        Unit("minutes"),
        "Time for which a replaced generation is kept next to the new one: longer than any query that may still read "
        "it.",
    ] = 60
    missed_minutes: Annotated[
        float,
        Range(10, 10_080),
        Unit("minutes"),
        "Age at which an object without an arrival is searched for by listing.",
    ] = 120
    listing_hours: Annotated[float, Range(0, 168), Unit("hours"), "Minimum interval between two such listings."] = 6


def min_keep_days(sweep: SweepSettings) -> int:
    """Days for which a file and the row of its arrival are needed: redelivery or the sweep may still look for them."""
    round_hours = 24 * LISTING_DAYS + sweep.listing_hours + sweep.missed_minutes / 60
    return max(MAX_REDELIVERY_DAYS, math.ceil(round_hours / 24)) + WAY_BACK


def keep_days_conflict(key: str, days: int, sweep: SweepSettings) -> Iterator[Conflict]:
    """A conflict if files or rows would expire while redelivery or the sweep may look for them."""
    minimum = min_keep_days(sweep)
    if 0 < days < minimum:
        expected = (
            f"expected 0 (never deleted) or at least {minimum}: an event can be redelivered for {MAX_REDELIVERY_DAYS} "
            "days"
        )
        yield Conflict((key, "sweep"), days, expected)


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """How long the ledger remembers."""

    keep_days: Annotated[
        int,
        Range(0, 36_500),
        Unit("days"),
        "Days after which DynamoDB may delete the row of an arrival; 0: never. A file that arrived before is never "
        "taken as new, and a backfill of its hour is refused. The input bucket has to keep versions: rows of files "
        "without a version, and of manifests, are always kept.",
    ] = 0

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
        """The row of a file that arrived before this may have been deleted at ``now`` (aware); None: no row is."""
        return now - timedelta(days=self.keep_days) + CLOCK_MARGIN if self.keep_days else None
