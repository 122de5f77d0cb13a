"""EventBridge Scheduler: schedules follow their time zone and are checked every second."""

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from ministack.core.responses import (  # type: ignore[import-untyped]
    new_uuid,
    set_request_account_id,
    set_request_region,
)
from ministack.services import eventbridge, scheduler  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap_handler
from local.isolation import ACCOUNT, REGION

_TICK_SECONDS = 1
_ZONE = "ScheduleExpressionTimezone"

_next: dict[EmulatorValue, tuple[tuple[str, str], float | None]] = {}
"""Schedule -> expression, time zone and the next time it fires, in seconds since 1970; None: never again."""


def patch() -> None:
    for change in ("create", "update"):
        wrap_handler("AWS::Scheduler::Schedule", change, _keep_zone)
    scheduler._tick_schedules = _tick
    scheduler._SCHEDULE_TICK_INTERVAL = _TICK_SECONDS


def _keep_zone(original: Original, *arguments: EmulatorValue) -> EmulatorValue:
    name, attributes = original(*arguments)
    # The name of the stack follows them.
    properties = arguments[-2]
    schedule = scheduler._schedules[f"{properties.get('GroupName', 'default')}/{name}"]
    schedule[_ZONE] = properties.get(_ZONE, "UTC")
    return name, attributes


def _tick() -> None:
    """Start the target of every due schedule; a schedule's times count from its creation or its last change."""
    now = datetime.now(UTC)
    for key, schedule in list(scheduler._schedules._data.items()):
        asked = schedule["ScheduleExpression"], schedule.get(_ZONE) or "UTC"
        known, due = _next.get(key, (None, None))
        if known != asked:
            _next[key] = asked, next_start(*asked, now)
        elif due is not None and due <= now.timestamp():
            # An instant fires once.
            _next[key] = asked, None if asked[0].startswith("at(") else next_start(*asked, now)
            if schedule.get("State") == "ENABLED":
                _start(schedule)


def _start(schedule: EmulatorValue) -> None:
    set_request_account_id(ACCOUNT)
    set_request_region(REGION)
    event = {
        "EventId": new_uuid(),
        "Source": "aws.scheduler",
        "DetailType": "Scheduled Event",
        "Detail": "{}",
        "Time": time.time(),
        "Resources": [schedule["Arn"]],
        "Account": ACCOUNT,
        "Region": REGION,
    }
    eventbridge._invoke_target(schedule["Target"], event, schedule)


def next_start(expression: str, time_zone: str, after: datetime) -> float | None:
    """Return the seconds since 1970 at which an expression fires next; for ``at()`` its time, even a past one.

    A time in the missing hour of spring is skipped, and so is the second time in a repeated hour.
    """
    zone = ZoneInfo(time_zone)
    if expression.startswith("at("):
        return datetime.fromisoformat(expression[len("at(") : -1]).replace(tzinfo=zone).timestamp()
    seconds = eventbridge._parse_rate_seconds(expression)
    if seconds is not None:
        return after.timestamp() + float(seconds)
    fields = eventbridge._parse_cron_fields(expression)
    local: datetime | None = after.astimezone(zone)
    while local is not None:
        local = eventbridge._cron_next_fire(fields, local)
        moment = None if local is None else local.astimezone(UTC)
        if moment is not None and moment.astimezone(zone) == local and moment > after:
            return moment.timestamp()
    return None
