"""When a manifest that waits will be converted."""

from __future__ import annotations

from datetime import datetime

from cli.deployed_stack import DeployedStack
from cli.documents import Expectation, NextNight
from cli.inspect.night_schedule import read_forecast, read_schedule
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.texts import read_instant
from lake.time import iso_utc


def read_next_night(stack: DeployedStack, now: datetime) -> NextNight:
    """Start and end of the next night by the newest forecast, else its start by the schedule; time zone and schedule.

    Raises botocore's errors.
    """
    schedule, forecast = read_schedule(stack), read_forecast(stack, now)
    start, end = schedule.next_start(now), None
    if forecast is not None and schedule.enabled:
        start = read_instant(forecast["forecast"]["start"])
        end = read_instant(forecast["forecast"]["end"]) if forecast["runs"] else None
    return NextNight(
        schedule.time_zone,
        schedule.expression,
        schedule.enabled,
        iso_utc(start) if start else None,
        iso_utc(end) if end else None,
    )


def expectation(row: ManifestRow, night: NextNight, now: datetime) -> Expectation | None:
    """What an open manifest waits for, and from when until when it should be converted; None: it is not open."""
    if row.state == State.COLLECTED or (row.state == State.QUEUED and row.lane == Lane.BATCH):
        return Expectation("night", night.start, night.end)
    if row.state == State.QUEUED:
        return Expectation("stream")
    if row.state == State.RUNNING:
        return Expectation("job run" if row.has_live_lease(now) else "sweep")
    return Expectation("publishing") if row.open else None
