"""Settings of what reaches people: ``alarms``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from lake.errors import InvalidSettingsError
from lake.settings.checks import check_choice, check_range

ADDRESS = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+")


class NotifyQuarantine(StrEnum):
    """What in the quarantine of an execution that succeeded is worth a notification."""

    NEVER = "never"
    FILES = "files"
    """A file that could not be read as a whole."""
    LINES = "lines"
    """A line that could not become a row, or such a file."""


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Which outcomes reach a person. What failed always does."""

    email: str = ""
    """Address that the stack subscribes to the topic of the alarms, with one mail to confirm it; empty: none."""

    notify_quarantine: str = NotifyQuarantine.FILES.value
    """An execution that succeeded notifies people of its quarantine: never, files or lines."""
    daily_dollars: float = 100
    """Dollars that the job runs of one day (UTC) may cost before an alarm is raised; 0: there is no such alarm."""
    stream_oldest_minutes: float = 30
    """Age in minutes that a manifest of the stream lane may reach before an alarm is raised. Lost pointers are written
    again after ``sweep.pointer_minutes``: with less than this an alarm comes where the sweep still repairs."""
    max_quarantined_share: float = 0.05
    """Share of a dataset's lines, or of its files, that may be in the quarantine after an execution before an alarm is
    raised, and share of the files of an hour that no rule may take; from 0 to 1; 1: there is no alarm for any share."""

    def __post_init__(self) -> None:
        check_choice("alarms.notify_quarantine", self.notify_quarantine, [choice.value for choice in NotifyQuarantine])
        check_range("alarms.daily_dollars", self.daily_dollars, 0, 10_000_000)
        check_range("alarms.stream_oldest_minutes", self.stream_oldest_minutes, 1, 10_080)
        check_range("alarms.max_quarantined_share", self.max_quarantined_share, 0, 1)
        if self.email and not ADDRESS.fullmatch(self.email):
            raise InvalidSettingsError("alarms.email", self.email, "expected one address, such as data@example.com")
