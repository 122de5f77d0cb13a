"""Rules that several settings share."""

from __future__ import annotations

import re
from datetime import date
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lake.schedule import FORMS, Schedule
from lake.settings.declaration import Text
from lake.time import TIME_OF_DAY

DATASET_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Valid as a Glue table name, a folder and a part of metric names."""
_KMS_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
"""The ARN of the key itself: a policy cannot name a key by its alias
(https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html)."""


def _is_time_zone(value: str) -> bool:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def is_date(value: str) -> bool:
    """Whether ``value`` is a date ``YYYY-MM-DD``."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


class ScheduleRule:
    """Expressions of EventBridge Scheduler, before AWS refuses them in a deployment."""

    allowed = FORMS

    def refusal(self, value: str) -> str | None:
        """What is expected instead, by field; None if the expression is accepted."""
        try:
            Schedule.parse(value)
        except ValueError as error:
            return str(error)
        return None


KMS_KEY = Text(_KMS_KEY_ARN, "the ARN of a KMS key (not of an alias)", or_empty=True)
TIME = Text(TIME_OF_DAY, "a time of day such as 08:00")
TIME_ZONE = Text(_is_time_zone, "an IANA time zone such as Europe/Berlin")
DATE = Text(is_date, "a date such as 2026-11-18")
SCHEDULE = ScheduleRule()
