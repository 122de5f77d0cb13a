"""Settings of the repairs: ``sweep``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_range


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """Age at which ``sweep`` repairs or reports something."""

    publishing_minutes: float = 60
    """A manifest that is PUBLISHING for longer is rolled forward."""
    pointer_minutes: float = 15
    """A manifest of the stream lane that is QUEUED for longer gets a new pointer; each one doubles the next wait."""
    stalled_hours: float = 36
    """A manifest that is open for longer is reported: longer than one overnight execution and the day before it."""
    grace_minutes: float = 60
    """Time for which a replaced generation is kept: longer than any query that may still read it."""
    missed_minutes: float = 120
    """Age at which an object without an arrival is searched for by listing."""
    listing_hours: float = 6
    """Minimum interval between two such listings."""
    listing_days: float = 2
    """Minimum window of modification times that a listing covers; it also reaches back to the last complete one."""

    def __post_init__(self) -> None:
        check_range("sweep.publishing_minutes", self.publishing_minutes, 1, 1440)
        check_range("sweep.pointer_minutes", self.pointer_minutes, 1, 1440)
        check_range("sweep.stalled_hours", self.stalled_hours, 1, 720)
        check_range("sweep.grace_minutes", self.grace_minutes, 0, 10_080)
        check_range("sweep.missed_minutes", self.missed_minutes, 10, 10_080)
        check_range("sweep.listing_hours", self.listing_hours, 0, 168)
        check_range("sweep.listing_days", self.listing_days, 1, 366)
