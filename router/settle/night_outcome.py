"""How an execution has ended compared with its deadline. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.counted import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NightOutcome:
    """An execution beside its plan."""

    planned_end: str | None
    """ISO 8601, UTC; None: no plan was recorded, and so there is no deadline."""
    deadline: str | None
    late_minutes: int
    """How much later than the deadline it has ended, in whole minutes; 0: it has not."""

    def sentences(self) -> list[str]:
        """What a person reads of it; without a full stop. Empty: it has ended in time."""
        if not self.late_minutes:
            return []
        late = f"it ended {format_count(self.late_minutes, 'minute')} after its deadline {self.deadline}"
        return [f"{late}; planned was {self.planned_end}"]


def read_night_outcome(row: Mapping[str, Any], ended: datetime) -> NightOutcome:
    """The outcome by the execution's row; ``ended`` is aware."""
    plan = row.get("plan", {})
    deadline = plan.get("deadline")
    late = ended - datetime.fromisoformat(deadline) if deadline else timedelta()
    return NightOutcome(plan.get("ends_at"), deadline, max(late // MINUTE, 0))
