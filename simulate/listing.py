"""Arrivals of a listing: a CSV file with the key, the size and the time of each object."""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lake.dataset_rules import matching_rule
from lake.errors import InvalidInputError
from lake.printable import printable
from simulate.arrivals import DAY_SECONDS, WINDOW_SECONDS, WINDOWS, FileGroup
from simulate.profile import MAX_BYTES
from simulate.schedule import night_start
from simulate.speed import GZIP_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date
    from pathlib import Path

    from lake.settings import Settings

COLUMNS = ("key", "size", "time")


class ListedArrivals:
    """The files of a listing that arrived in the 24 hours before a night; the same at every call.

    Keys that the settings treat alike are followed under one of them, so each file takes a few dozen bytes of memory.
    """

    def __init__(self, path: Path, settings: Settings, day: date | None) -> None:
        """Read the file; ``day`` is the local date on which the night begins, None: that with the most files.

        Raises
        ------
        InvalidInputError
            The file cannot be read, lacks a column, has a line that is not valid, or no file of the day.
        """
        self._settings = settings
        self._keys: dict[tuple[object, ...], int] = {}
        self._representatives: list[str] = []
        self._times, self._sizes, self._kinds = array("d"), array("Q"), array("L")
        self._read(path)
        self.night = self._night(path, day)
        first = self.night.timestamp() - DAY_SECONDS
        windows = ((number, (time - first) // WINDOW_SECONDS) for number, time in enumerate(self._times))
        self._order = [number for number, window in windows if 0 <= window < WINDOWS]
        self._order.sort(key=self._times.__getitem__)
        self.left_out = len(self._times) - len(self._order)
        """Files of other days."""
        if not self._order:
            raise InvalidInputError(f"{path} has no file of the 24 hours before {self.night:%Y-%m-%dT%H:%MZ}")

    def windows(self) -> Iterator[Sequence[FileGroup]]:
        """The groups of each of the day's windows, in order of time."""
        first, position = self.night.timestamp() - DAY_SECONDS, 0
        for window in range(WINDOWS):
            end = first + (window + 1) * WINDOW_SECONDS
            found: Counter[tuple[int, int]] = Counter()
            while position < len(self._order) and self._times[self._order[position]] < end:
                number = self._order[position]
                found[self._kinds[number], self._sizes[number]] += 1
                position += 1
            yield [FileGroup(self._representatives[kind], size, count) for (kind, size), count in found.items()]

    def _read(self, path: Path) -> None:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                lines = csv.DictReader(file)
                if missing := [name for name in COLUMNS if name not in (lines.fieldnames or ())]:
                    raise InvalidInputError(
                        f"{path} has no column {missing[0]}: its first line must name {', '.join(COLUMNS)}"
                    )
                for line in lines:
                    self._add(line, f"{path}, line {lines.line_num}")
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InvalidInputError(f"{path} cannot be read: {error}") from error

    def _add(self, line: dict[str, str | None], where: str) -> None:
        key, size, time = (line[name] or "" for name in COLUMNS)
        if not size.isascii() or not size.isdigit() or int(size) > MAX_BYTES:
            raise InvalidInputError(f"{where}: size = {printable(size)!r} is wrong: expected a number of bytes")
        try:
            instant = datetime.fromisoformat(time)
        except ValueError:
            raise InvalidInputError(
                f"{where}: time = {printable(time)!r} is wrong: expected a time such as 2026-11-18T09:30:00Z"
            ) from None
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        self._times.append(instant.timestamp())
        self._sizes.append(int(size))
        self._kinds.append(self._kind(key))

    def _kind(self, key: str) -> int:
        """Number of the keys that the settings treat like this one."""
        settings = self._settings
        rule, dataset = matching_rule(key, settings.datasets)
        urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
        ignored = key.endswith("/") or settings.input.suffix_of(key) is None
        kind = (rule, dataset, urgent, ignored, key.endswith(GZIP_SUFFIX))
        if kind not in self._keys:
            self._keys[kind] = len(self._representatives)
            self._representatives.append(key)
        return self._keys[kind]

    def _night(self, path: Path, day: date | None) -> datetime:
        if day is not None:
            return night_start(self._settings, day)
        nights: Counter[datetime] = Counter()
        minutes = Counter(int(time // 60) for time in self._times)
        for minute, files in minutes.items():
            if (night := self._next_night(datetime.fromtimestamp(minute * 60, UTC))) is not None:
                nights[night] += files
        if not nights:
            raise InvalidInputError(f"{path} has no files, or none on a day with a night (schedule.overnight)")
        return max(nights, key=lambda night: (nights[night], night))

    def _next_night(self, instant: datetime) -> datetime | None:
        """The night of at most 24 hours later; None: none begins then."""
        local = instant.astimezone(ZoneInfo(self._settings.time_zone)).date()
        for day in (local, local + timedelta(days=1)):
            try:
                night = night_start(self._settings, day)
            except InvalidInputError:
                continue
            if instant < night <= instant + timedelta(days=1):
                return night
        return None
