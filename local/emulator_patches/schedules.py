"""EventBridge Scheduler: schedules follow their time zone and are checked every second."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from ministack.services import eventbridge, scheduler  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue

_TICK_SECONDS = 1
_IGNORED_BY_CLOUDFORMATION = ("ScheduleExpressionTimezone", "StartDate", "EndDate")


class _ZonedExpression(str):
    zone: ZoneInfo


class _ZonedFields(tuple[Any, ...]):
    zone: ZoneInfo


def patch() -> None:
    _patch_cloudformation()
    _patch_tick()
    _patch_time_zones()


def _patch_cloudformation() -> None:
    handlers = provisioners._RESOURCE_HANDLERS["AWS::Scheduler::Schedule"]
    create, update = handlers["create"], handlers["update"]

    def keep(name: str, properties: EmulatorValue) -> None:
        schedule = scheduler._schedules[f"{properties.get('GroupName', 'default')}/{name}"]
        schedule.update({key: properties[key] for key in _IGNORED_BY_CLOUDFORMATION if key in properties})

    def create_schedule(logical_id: str, properties: EmulatorValue, stack_name: str) -> EmulatorValue:
        name, attributes = create(logical_id, properties, stack_name)
        keep(name, properties)
        return name, attributes

    def update_schedule(physical_id: str, old: EmulatorValue, new: EmulatorValue, stack_name: str) -> EmulatorValue:
        name, attributes = update(physical_id, old, new, stack_name)
        keep(name, new)
        return name, attributes

    handlers.update(create=create_schedule, update=update_schedule)


def _patch_tick() -> None:
    """The firing times of a schedule count from its creation or update; an at() that replaces a cron() fires."""
    tick = scheduler._tick_schedules

    def tick_schedules() -> None:
        for key, schedule in list(scheduler._schedules._data.items()):
            if isinstance(schedule["ScheduleExpression"], _ZonedExpression):
                continue
            expression = _ZonedExpression(schedule["ScheduleExpression"])
            expression.zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
            schedule["ScheduleExpression"] = expression
            scheduler._schedule_last_fired.pop(key, None)
            if not expression.startswith("at("):
                scheduler._schedule_last_fired[key] = time.time()
        tick()

    scheduler._tick_schedules = tick_schedules
    scheduler._SCHEDULE_TICK_INTERVAL = _TICK_SECONDS


def _patch_time_zones() -> None:
    """Schedules follow their ScheduleExpressionTimezone; a time in the hour that is missing in spring is skipped."""
    at, parse, following = scheduler._at_time_epoch, eventbridge._parse_cron_fields, eventbridge._cron_next_fire

    def at_time_epoch(expression: str) -> float | None:
        epoch: float | None = at(expression)
        if epoch is None or not isinstance(expression, _ZonedExpression):
            return epoch
        return datetime.fromtimestamp(epoch, UTC).replace(tzinfo=expression.zone).timestamp()

    def parse_cron_fields(expression: str) -> EmulatorValue:
        fields = parse(expression)
        if fields is None or not isinstance(expression, _ZonedExpression):
            return fields
        zoned = _ZonedFields(fields)
        zoned.zone = expression.zone
        return zoned

    def cron_next_fire(fields: EmulatorValue, after: datetime) -> datetime | None:
        zone = fields.zone if isinstance(fields, _ZonedFields) else UTC
        local: datetime | None = after.astimezone(zone)
        while True:
            local = following(fields, local)
            if local is None:
                return None
            moment = local.astimezone(UTC)
            if moment.astimezone(zone).hour == local.hour:
                return moment

    scheduler._at_time_epoch = at_time_epoch
    eventbridge._parse_cron_fields, eventbridge._cron_next_fire = parse_cron_fields, cron_next_fire
