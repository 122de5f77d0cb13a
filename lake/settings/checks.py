"""Checks of single values; each raises ``InvalidSettingsError`` with key and value."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lake.errors import InvalidSettingsError

if TYPE_CHECKING:
    from collections.abc import Collection

DATASET_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Valid as a Glue table name, a folder and a part of metric names."""
STAGE_NAME = re.compile(r"[a-z][a-z0-9_]{0,42}")
"""As a dataset's name, and short enough for the longest limited name of a stage: that of the application of EMR
Serverless for the streaming jobs, ``hybrid-router-<stage>-stream``, has at most 64 characters (CreateApplication)."""
TAG = re.compile(r"(?!aws:)[\w .:/+@-]{1,128}=[\w .:/=+@-]{0,256}")
"""Of a resource (https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html)."""
BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
KMS_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
"""Of the key itself: a policy cannot name a key by its alias
(https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html)."""
TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d|24:00")


def check_range(key: str, value: float, low: float, high: float) -> None:
    """Check that ``low <= value <= high``."""
    if not low <= value <= high:
        raise InvalidSettingsError(key, value, f"expected a number from {low} to {high}")


def check_choice(key: str, value: str, choices: Collection[str]) -> None:
    """Check that ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidSettingsError(key, value, f"expected one of {', '.join(choices)}")


def check_pattern(key: str, value: str, pattern: re.Pattern[str], expected: str) -> None:
    """Check that the whole value matches ``pattern``; ``expected`` describes it for people."""
    if not pattern.fullmatch(value):
        raise InvalidSettingsError(key, value, f"expected {expected}")


def check_kms_key(key: str, value: str) -> None:
    """Check that ``value`` is the ARN of a KMS key, or empty."""
    if value:
        check_pattern(key, value, KMS_KEY_ARN, "the ARN of a KMS key (not of an alias), or an empty string")


def check_time_zone(key: str, value: str) -> None:
    """Check that ``value`` is a name of the IANA time zone database."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidSettingsError(key, value, "expected an IANA time zone such as Europe/Berlin") from error


def check_date(key: str, value: str) -> None:
    """Check that ``value`` is a date ``YYYY-MM-DD``."""
    try:
        date.fromisoformat(value)
    except ValueError as error:
        raise InvalidSettingsError(key, value, "expected a date such as 2026-11-18") from error


def minutes_of_day(key: str, text: str) -> int:
    """Minutes from midnight to ``HH:MM``; ``24:00`` is the end of the day."""
    check_pattern(key, text, TIME_OF_DAY, "a time of day such as 08:00")
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)
