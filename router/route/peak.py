"""Peak hours: windows of the local wall clock. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lake.settings.routing import DAYS
from lake.time import minutes_of_day

if TYPE_CHECKING:
    from datetime import date, datetime

    from lake.settings import PeakSettings


def peak_window(peak: PeakSettings, time_zone: str, now: datetime) -> str | None:
    """The window of ``peak.hours`` that contains ``now`` (aware), or None.

    Windows follow the wall clock of ``time_zone``: the hour that is skipped in spring is in no window, the hour that is
    repeated in autumn is in its window twice. A window that passes midnight belongs to the day on which it begins.
    """
    local = now.astimezone(ZoneInfo(time_zone))
    minute = local.hour * 60 + local.minute
    today, yesterday = local.date(), local.date() - timedelta(days=1)
    for window in peak.hours:
        first, _, last = window.partition("-")
        start, end = minutes_of_day(first), minutes_of_day(last)
        if start < end:
            inside = start <= minute < end and _is_peak_day(peak, today)
        else:
            evening = minute >= start and _is_peak_day(peak, today)
            inside = evening or (minute < end and _is_peak_day(peak, yesterday))
        if inside:
            return window
    return None


def _is_peak_day(peak: PeakSettings, day: date) -> bool:
    return DAYS[day.weekday()] in peak.days
