"""Settings of ``sweep``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """How long something may take before ``sweep`` repairs it."""

    publishing_minutes: float = 60
    """A manifest that publishes for longer is rolled forward."""
    pointer_minutes: float = 15
    """A manifest of the stream that waits for longer gets a new pointer, then after twice that, and so on."""
    stalled_hours: float = 36
    """A manifest that is open for longer is reported: longer than a night and the day before it."""
    grace_minutes: float = 60
    """How long a replaced generation stays beside its successor: longer than any query that began before."""
    missed_minutes: float = 120
    """An object whose event has not come after so long is looked for by listing ..."""
    listing_hours: float = 6
    """... so often ..."""
    listing_days: float = 2
    """... and so far back. For older ones there is ``backfill``."""

    def __post_init__(self) -> None:
        check_range("sweep.publishing_minutes", self.publishing_minutes, 1, 1440)
        check_range("sweep.pointer_minutes", self.pointer_minutes, 1, 1440)
        check_range("sweep.stalled_hours", self.stalled_hours, 1, 720)
        check_range("sweep.grace_minutes", self.grace_minutes, 0, 10_080)
        check_range("sweep.missed_minutes", self.missed_minutes, 10, 10_080)
        check_range("sweep.listing_hours", self.listing_hours, 0, 168)
        check_range("sweep.listing_days", self.listing_days, 1, 366)
