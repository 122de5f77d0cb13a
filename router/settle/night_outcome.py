"""How an execution has ended compared with its plan: the deadline, and a switch of its engine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.bills import MICRO
from lake.counted import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class EngineSwitch:
    """What was left of the execution went on on another engine, or would have, within the budget."""

    at: str
    """ISO 8601, UTC."""
    from_engine: str
    engine: str
    reason: str
    """Completes "because ..."."""
    expected_dollars: float
    """Of the whole execution, after the switch."""
    planned_dollars: float
    """Of the whole execution, by its plan."""

    @property
    def instead(self) -> str:
        """The engines and the reason, for a sentence."""
        return f"{self.engine} in place of {self.from_engine}, because {self.reason}"


@dataclass(frozen=True, slots=True)
class NightOutcome:
    """An execution beside its plan."""

    planned_end: str | None
    """ISO 8601, UTC; None: no plan was recorded, and so there is no deadline."""
    deadline: str | None
    late_minutes: int
    """How much later than the deadline it has ended, in whole minutes; 0: it has not."""
    switch: EngineSwitch | None
    refused_switch: EngineSwitch | None
    """It needed a dearer engine than ``batch.night_budget_dollars`` allows."""

    @property
    def notify(self) -> bool:
        """Whether a person is told, also if it has succeeded."""
        return self.late_minutes > 0 or self.refused_switch is not None

    def sentences(self) -> list[str]:
        """What a person reads of it; without a full stop."""
        found = []
        if self.late_minutes:
            late = f"it ended {format_count(self.late_minutes, 'minute')} after its deadline {self.deadline}"
            found.append(f"{late}; planned was {self.planned_end}")
        if self.switch is not None:
            found.append(
                f"since {self.switch.at} its runs used {self.switch.instead}: ${self.switch.expected_dollars:.2f} are "
                f"expected for all of it, ${self.switch.planned_dollars:.2f} were planned"
            )
        if self.refused_switch is not None:
            found.append(
                f"at {self.refused_switch.at} its runs needed {self.refused_switch.instead}, but "
                f"${self.refused_switch.expected_dollars:.2f} for all of it is more than batch.night_budget_dollars: "
                "raise it, or move schedule.deadline"
            )
        return found


def read_night_outcome(row: Mapping[str, Any], ended: datetime) -> NightOutcome:
    """The outcome by the execution's row; ``ended`` is aware."""
    plan = row.get("plan", {})
    deadline = plan.get("deadline")
    late = ended - datetime.fromisoformat(deadline) if deadline else timedelta()
    switch, refused = _switch(row.get("switch")), _switch(row.get("refused_switch"))
    # A switch that a first budget refused can have been made later.
    return NightOutcome(
        plan.get("ends_at"), deadline, max(late // MINUTE, 0), switch, None if switch is not None else refused
    )


def _switch(facts: Mapping[str, Any] | None) -> EngineSwitch | None:
    if facts is None:
        return None
    expected, planned = (int(facts[name]) / MICRO for name in ("micro_dollars", "planned_micro_dollars"))
    return EngineSwitch(facts["at"], facts["from_engine"], facts["engine"], facts["reason"], expected, planned)
