"""Arrivals of a listing: the key, the size and the time of each object, in any order."""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from lake.compression import has_compressed_name
from lake.dataset_rules import matching_rule
from lake.errors import InvalidInputError
from lake.printable import printable
from lake.settings import Settings
from sizing.arrivals import DAY_SECONDS, FileGroup, windows_of_day
from sizing.profile import MAX_BYTES

COLUMNS = ("key", "size", "time")


class ListedFile(NamedTuple):
    """One object of a listing."""

    key: str
    size: int
    """Bytes as stored."""
    time: float
    """Of its arrival, in seconds since the epoch."""


def read_csv(path: Path) -> Iterator[ListedFile]:
    """The files of a CSV file whose first line names ``COLUMNS``; a time without a zone is in UTC.

    Raises
    ------
    InvalidInputError
        The file cannot be read, lacks a column, or has a line that is not valid.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            if missing := [name for name in COLUMNS if name not in (lines.fieldnames or ())]:
                raise InvalidInputError(
                    f"{path} has no column {missing[0]}: its first line must name {', '.join(COLUMNS)}"
                )
            for line in lines:
                yield _listed_file(line, f"{path}, line {lines.line_num}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from error


def _listed_file(line: dict[str, str | None], where: str) -> ListedFile:
    key, size, time = (line[name] or "" for name in COLUMNS)
    if not size.isascii() or not size.isdigit() or int(size) > MAX_BYTES:
        raise InvalidInputError(f"{where}: size = {printable(size)!r} is wrong: expected a number of bytes")
    try:
        instant = datetime.fromisoformat(time)
    except ValueError:
        raise InvalidInputError(
            f"{where}: time = {printable(time)!r} is wrong: expected a time such as 2026-11-18T09:30:00Z"
        ) from None
    return ListedFile(key, int(size), (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp())


class ListedArrivals:
    """The files of a listing that arrived in the 24 hours before a night; the same at every call.

    Keys that the settings treat alike are followed under one of them, so each file takes a few dozen bytes of memory.
    """

    def __init__(self, files: Iterable[ListedFile], source: str, settings: Settings, night: datetime) -> None:
        """Read the listing; its files are read once.

        Parameters
        ----------
        source
            The listing's name, for errors.
        night
            Start of the night, aware.

        Raises
        ------
        InvalidInputError
            There is no file of the day, or ``files`` raises it.
        """
        self._settings, self.night = settings, night
        self._keys: dict[tuple[object, ...], int] = {}
        self._representatives: list[str] = []
        self._times, self._sizes, self._kinds = array("d"), array("Q"), array("L")
        for key, size, time in files:
            self._times.append(time)
            self._sizes.append(size)
            self._kinds.append(self._kind(key))
        first = self.night.timestamp() - DAY_SECONDS
        self._order = [number for number, time in enumerate(self._times) if 0 <= time - first < DAY_SECONDS]
        self._order.sort(key=self._times.__getitem__)
        self.left_out = len(self._times) - len(self._order)
        """Files of other days."""
        if not self._order:
            raise InvalidInputError(f"{source} has no file of the 24 hours before {self.night:%Y-%m-%dT%H:%MZ}")

    def windows(self) -> Iterator[Sequence[FileGroup]]:
        """The groups of each of the day's windows, in order of time."""
        first, position = self.night.timestamp() - DAY_SECONDS, 0
        for window in range(windows_of_day(self._settings)):
            end = first + (window + 1) * self._settings.input.event_window_seconds
            found: Counter[tuple[int, int]] = Counter()
            while position < len(self._order) and self._times[self._order[position]] < end:
                number = self._order[position]
                found[self._kinds[number], self._sizes[number]] += 1
                position += 1
            yield [FileGroup(self._representatives[kind], size, count) for (kind, size), count in found.items()]

    def _kind(self, key: str) -> int:
        """Number of the keys that the settings treat like this one."""
        settings = self._settings
        rule, dataset = matching_rule(key, settings.datasets)
        urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
        ignored = key.endswith("/") or settings.input.suffix_of(key) is None
        kind = (rule, dataset, urgent, ignored, has_compressed_name(key))
        if kind not in self._keys:
            self._keys[kind] = len(self._representatives)
            self._representatives.append(key)
        return self._keys[kind]
