"""When a manifest that waits will be converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.format_values import read_instant
from cli.night_schedule import read_forecast, read_schedule
from lake.ledger import State
from lake.manifest import Lane
from lake.time import iso_utc

if TYPE_CHECKING:
    from datetime import datetime

    from cli.deployed_stack import DeployedStack
    from lake.ledger import ManifestRow


def read_next_night(stack: DeployedStack, now: datetime) -> dict[str, Any]:
    """Start and end of the next night by the newest forecast, else its start by the schedule; time zone and schedule.

    Raises botocore's errors.
    """
    schedule, forecast = read_schedule(stack), read_forecast(stack, now)
    start, end = schedule.next_start(now), None
    if forecast is not None and schedule.enabled:
        start = read_instant(forecast["forecast"]["start"])
        end = read_instant(forecast["forecast"]["end"]) if forecast["runs"] else None
    return {
        "timeZone": schedule.time_zone,
        "schedule": schedule.expression,
        "enabled": schedule.enabled,
        "start": iso_utc(start) if start else None,
        "end": iso_utc(end) if end else None,
    }


def expectation(row: ManifestRow, night: dict[str, Any], now: datetime) -> dict[str, Any] | None:
    """What an open manifest waits for, and from when until when it should be converted; None: it is not open."""
    if row.state == State.QUEUED and row.lane == Lane.BATCH:
        return {"waitsFor": "night", "start": night["start"], "end": night["end"]}
    if row.state == State.QUEUED:
        return {"waitsFor": "stream", "start": None, "end": None}
    if row.state == State.RUNNING:
        return {"waitsFor": "job run" if row.has_live_lease(now) else "sweep", "start": None, "end": None}
    return {"waitsFor": "publishing", "start": None, "end": None} if row.open else None
