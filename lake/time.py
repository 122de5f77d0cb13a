"""Instants as the ledger and the documents write them, and the local wall clock of a deployment.

Schedule expressions of Amazon EventBridge Scheduler: the times of day and the days on which they start something
(Amazon EventBridge Scheduler User Guide, "Schedule types").
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00")
"""``HH:MM``; ``24:00`` is the end of the day."""


def iso_utc(instant: datetime) -> str:
    """An aware instant as ISO 8601 in UTC with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def epoch_milliseconds(instant: datetime) -> int:
    """An aware instant as milliseconds since 1970-01-01T00:00:00Z."""
    return int(instant.timestamp() * 1000)


def minutes_of_day(clock: str) -> int:
    """Minutes from midnight to ``HH:MM``, a match of ``TIME_OF_DAY``."""
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def next_local_time(clock: str, time_zone: str, now: datetime) -> datetime:
    """The first instant (UTC) after ``now`` (aware) at which the wall clock of ``time_zone`` shows ``clock``."""
    return next(
        instant for days in (0, 1, 2) if (instant := local_time(minutes_of_day(clock), time_zone, now, days)) > now
    )


def local_time(minute: int, time_zone: str, now: datetime, days: int) -> datetime:
    """The instant (UTC) of a minute of the day by the wall clock of ``time_zone``, ``days`` after ``now``'s date."""
    zone = ZoneInfo(time_zone)
    local = now.astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone)
    # Wall-clock arithmetic on purpose: the offset of the zone is applied after the addition.
    return (midnight + timedelta(days=days, minutes=minute)).astimezone(UTC)


FORMS = "cron(...), rate(...), at(...)"
MAX_CHARACTERS = 256
"""Maximum length of an expression (EventBridge Scheduler API Reference, CreateSchedule)."""
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
"""In the order of ``datetime.weekday``."""
RATE = re.compile(r"rate\((?P<number>[1-9][0-9]{0,4}) (?P<unit>minute|hour|day)s?\)")
AT = re.compile(r"at\([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\)")
PART = re.compile(r"(\*|[0-9A-Z]+(?:-[0-9A-Z]+)?)(?:/(0*[1-9][0-9]*))?")
DAY_MINUTES = 24 * 60
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 1, 7, (*WEEKDAYS[6:], *WEEKDAYS[:6])),
    ("year", 1970, 2199, ()),
)
"""Each field of cron(...): its name, lowest and highest number, and names, which count from the lowest number."""
_SPECIAL = {
    "day of month": re.compile(r"\?|L|LW|(?:[1-9]|[12]\d|3[01])W"),
    "day of week": re.compile(rf"\?|L|(?:[1-7]|{'|'.join(WEEKDAYS)})(?:L|#[1-5])"),
}
"""Special values, alone in their field: the other field decides, last day, nearest working day, n-th weekday."""


@dataclass(frozen=True, slots=True)
class Schedule:
    expression: str
    times: tuple[int, ...]
    """Minutes of the day at which it starts something; empty for an interval or a single instant."""
    days: frozenset[int] | None
    """Days of the week (0 is Monday) on which it starts something; None if not only the weekday decides."""

    @classmethod
    def parse(cls, expression: str) -> "Schedule":
        """Parse an expression.

        Raises ``ValueError`` if EventBridge Scheduler would refuse it; the message says what is expected.
        """
        if len(expression) > MAX_CHARACTERS:
            raise ValueError(f"expected at most {MAX_CHARACTERS} characters")
        if expression.startswith("cron(") and expression.endswith(")"):
            return _parse_cron(expression)
        if expression.startswith("rate("):
            if not RATE.fullmatch(expression):
                raise ValueError("expected rate(<number> minutes, hours or days), such as rate(1 day)")
        elif expression.startswith("at("):
            try:
                is_instant = AT.fullmatch(expression) and datetime.fromisoformat(expression[3:-1]).astimezone()
            except (ValueError, OverflowError):
                is_instant = None
            if not is_instant:
                raise ValueError("expected at(<local time>), such as at(2026-11-20T22:00:00)")
        else:
            raise ValueError(f"expected {FORMS}")
        return cls(expression, (), None)

    @property
    def minute(self) -> int | None:
        """The minute of the day at which it starts something; None if there are several or none."""
        return self.times[0] if len(self.times) == 1 else None

    @property
    def is_daily(self) -> bool:
        return self.days is not None and len(self.days) == len(WEEKDAYS)

    def starts_on(self, day: date) -> bool:
        """Whether it starts something on a local date. False if not only the day of the week decides."""
        return self.days is not None and day.weekday() in self.days

    @property
    def max_pause(self) -> timedelta:
        """Longest time between two starts by the wall clock; a day if it has one start.

        An upper bound if not only the day of the week decides: 64 days from one 31st of a month to the next (or the
        nearest working day), 119 days from one fifth Monday to the next, and a year if the schedule names months or
        years.
        """
        if rate := RATE.fullmatch(self.expression):
            return timedelta(**{f"{rate['unit']}s": int(rate["number"])})
        if self.times and self.days is None:
            _, _, _, month, _, year = _fields_of(self.expression)
            if (month, year) != ("*", "*"):
                return timedelta(days=366)
            return timedelta(days=119 if "#5" in self.expression else 64)
        days = [number for number in range(2 * len(WEEKDAYS)) if number % len(WEEKDAYS) in (self.days or ())]
        pauses = [after - before for before, after in pairwise(self.times)]
        pauses += [DAY_MINUTES * (after - before) + self.times[0] - self.times[-1] for before, after in pairwise(days)]
        return timedelta(minutes=max(pauses, default=DAY_MINUTES))

    def next_start(self, time_zone: str, now: datetime) -> datetime | None:
        """The next start (UTC) after ``now`` (aware); None unless times of day and days of the week alone decide.

        A time that the clock skips in spring is skipped.
        """
        # A whole week can have its only start in the skipped hour.
        zone = ZoneInfo(time_zone)
        today = now.astimezone(zone).date()
        for number in range(2 * len(WEEKDAYS) + 1):
            for minute in self.times if self.starts_on(today + timedelta(days=number)) else ():
                start = local_time(minute, time_zone, now, number)
                shown = start.astimezone(zone)
                if start > now and 60 * shown.hour + shown.minute == minute:
                    return start
        return None

    def describe(self) -> str:
        """``every day at 22:00``, ``MON-FRI at 07:45``; the expression itself if it has no such form."""
        if self.minute is None or self.days is None:
            return self.expression
        days = "every day" if self.is_daily else _fields_of(self.expression)[4].upper()
        return f"{days} at {self.minute // 60:02d}:{self.minute % 60:02d}"


def _fields_of(expression: str) -> list[str]:
    return expression.removeprefix("cron(").removesuffix(")").split()


def _parse_cron(expression: str) -> Schedule:
    texts = _fields_of(expression)
    if len(texts) != len(_FIELDS):
        names = ", ".join(field[0] for field in _FIELDS)
        raise ValueError(f"expected the {len(_FIELDS)} fields {names}; there are {len(texts)}")
    values = [_values(text.upper(), *field) for text, field in zip(texts, _FIELDS, strict=True)]
    minutes, hours, _, _, weekdays, _ = values
    day_of_month, month, day_of_week, year = texts[2:]
    if (day_of_month == "?") is (day_of_week == "?"):
        raise ValueError("expected ? in exactly one of day of month and day of week")
    assert minutes is not None
    assert hours is not None
    days = None
    if (month, year) == ("*", "*") and day_of_month in ("*", "?") and (day_of_week == "?" or weekdays is not None):
        # Scheduler's days of the week begin with Sunday, which is 1.
        days = frozenset((day + 5) % 7 for day in weekdays or range(1, 8))
    return Schedule(expression, tuple(sorted(60 * hour + minute for hour in hours for minute in minutes)), days)


def _values(text: str, name: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int] | None:
    """The numbers that a field stands for; None for the special forms of the day fields."""
    if name in _SPECIAL and _SPECIAL[name].fullmatch(text):
        return None
    parts = [_part(part, low, high, names) for part in text.split(",")]
    if any(part is None for part in parts):
        words = f" or {names[0]}-{names[-1]}" if names else ""
        raise ValueError(f"its field {name} is {text!r}, expected numbers from {low} to {high}{words}")
    return frozenset(number for part in parts if part for number in part)


def _part(part: str, low: int, high: int, names: tuple[str, ...]) -> list[int] | None:
    """The numbers of ``*``, a value or a range, with or without an increment; None for any other text."""
    found = PART.fullmatch(part)
    text, step = found.groups() if found else ("", None)
    ends = [low, high] if text == "*" else [_number(end, low, names) for end in text.split("-")]
    # Scheduler refuses */60 in the minutes.
    if not all(low <= end <= high for end in ends) or int(step or low) > high:
        return None
    first, last = ends[0], high if step and len(ends) == 1 else ends[-1]
    # A range such as FRI-MON continues after the end of the week.
    numbers = range(first, last + 1) if first <= last else [*range(first, high + 1), *range(low, last + 1)]
    return list(numbers)[:: int(step or 1)]


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    """The number of a text or name; -1 if it is not a number."""
    if text in names:
        return names.index(text) + low
    return int(text) if text.isdigit() else -1
