"""Partitions: one hour of one dataset, fixed when an arrival is recorded first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """One UTC hour of one dataset."""

    dataset: str
    date: str
    """``YYYY-MM-DD``, UTC."""
    hour: int
    """0 to 23, UTC."""

    @classmethod
    def of(cls, dataset: str, instant: datetime) -> Partition:
        """The partition of an aware instant."""
        utc = instant.astimezone(UTC)
        return cls(dataset, utc.date().isoformat(), utc.hour)

    @classmethod
    def parse(cls, text: str) -> Partition:
        """Inverse of ``str()``: ``dataset#YYYY-MM-DDTHH``. Raises ``ValueError``."""
        dataset, _, stamp = text.rpartition("#")
        date, _, hour = stamp.partition("T")
        return cls(dataset, date, int(hour))

    def __str__(self) -> str:
        return f"{self.dataset}#{self.stamp}"

    @property
    def stamp(self) -> str:
        """``YYYY-MM-DDTHH``, UTC; its order is that of time."""
        return f"{self.date}T{self.hour:02d}"
