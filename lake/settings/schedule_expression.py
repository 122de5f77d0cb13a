"""Checks of schedule expressions: the formats of EventBridge Scheduler, before AWS refuses them in a deployment.

Source: Amazon EventBridge Scheduler User Guide, "Schedule types".
"""

from __future__ import annotations

import re
from datetime import datetime

from lake.errors import InvalidSettingsError

FORMS = ("cron(...)", "rate(...)", "at(...)")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
RATE = re.compile(r"rate\([1-9]\d* (?:minutes?|hours?|days?)\)")
DAY_OF_MONTH, DAY_OF_WEEK = 2, 4
"""Places of the two fields of which exactly one is ``?``."""
FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of week", 1, 7, WEEKDAYS),
    ("year", 1970, 2199, ()),
)
"""Each field of cron(...): its name, its lowest and highest number, and names that count from the lowest."""
_SPECIAL = {
    "day of month": re.compile(r"L|LW|(?:[1-9]|[12]\d|3[01])W"),
    "day of week": re.compile(rf"L|(?:[1-7]|{'|'.join(WEEKDAYS)})(?:L|#[1-5])"),
}
"""Last day, nearest working day, n-th day of the week of a month; they are alone in their field."""
DAILY = re.compile(r"cron\((\d{1,2}) (\d{1,2}) \* \* \? \*\)")
"""A schedule that starts once every day (EventBridge Scheduler, "Cron-based schedules")."""
_CLOCK = re.compile(r"cron\((\d{1,2}) (\d{1,2}) .*\)")


def check_schedule(key: str, value: str) -> None:
    """Check that ``value`` is an expression of EventBridge Scheduler, each field of cron(...) included."""
    if value.startswith("cron(") and value.endswith(")"):
        _check_cron(key, value)
    elif value.startswith("rate("):
        if not RATE.fullmatch(value):
            raise InvalidSettingsError(
                key, value, "expected rate(<number> minutes, hours or days), such as rate(1 day)"
            )
    elif value.startswith("at("):
        _check_at(key, value)
    else:
        raise InvalidSettingsError(key, value, f"expected {', '.join(FORMS)}")


def minute_of_start(expression: str) -> int | None:
    """Minutes from midnight to the only time of the day at which a schedule starts; None: there is no such time."""
    match = _CLOCK.fullmatch(expression)
    return int(match[2]) * 60 + int(match[1]) if match else None


def _check_cron(key: str, value: str) -> None:
    texts = value.removeprefix("cron(").removesuffix(")").split()
    if len(texts) != len(FIELDS):
        every = ", ".join(field[0] for field in FIELDS)
        raise InvalidSettingsError(key, value, f"expected the {len(FIELDS)} fields {every}; there are {len(texts)}")
    for text, (name, low, high, names) in zip(texts, FIELDS, strict=True):
        if not _is_field(text, name, low, high, names):
            words = f" or {names[0]}-{names[-1]}" if names else ""
            expected = f"its field {name} is {text!r}, expected numbers from {low} to {high}{words}"
            raise InvalidSettingsError(key, value, expected)
    if (texts[DAY_OF_MONTH] == "?") is (texts[DAY_OF_WEEK] == "?"):
        raise InvalidSettingsError(key, value, "expected ? in exactly one of day of month and day of week")


def _check_at(key: str, value: str) -> None:
    try:
        datetime.strptime(value, "at(%Y-%m-%dT%H:%M:%S)").astimezone()
    except (ValueError, OverflowError) as error:
        raise InvalidSettingsError(key, value, "expected at(<local time>), such as at(2026-11-20T22:00:00)") from error


def _is_field(text: str, name: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    special = _SPECIAL.get(name)
    if special is not None and (text == "?" or special.fullmatch(text.upper())):
        return True
    return all(_is_part(part, low, high, names) for part in text.split(","))


def _is_part(part: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    """Whether one of the values between commas is ``*``, a value or a range, each with an increment or without."""
    values, slash, step = part.partition("/")
    if slash and not (_is_number(step) and int(step) >= 1):
        return False
    if values == "*":
        return True
    ends = [_value(text, low, names) for text in values.split("-")]
    return len(ends) <= 2 and all(end is not None and low <= end <= high for end in ends)


def _value(text: str, low: int, names: tuple[str, ...]) -> int | None:
    if text.upper() in names:
        return names.index(text.upper()) + low
    return int(text) if _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
