"""The profile of a simulated day: how many files of which sizes arrive when."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings.checks import check_range, minutes_of_day
from lake.settings.parse import build

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 5 << 40
"""Far above the largest object that S3 stores."""
MAX_CLASSES = 10_000
"""Kinds of files (dataset, size, urgent or not, compressed or not) that are followed apart."""


@dataclass(frozen=True, slots=True)
class SizeShare:
    """Files of one size."""

    bytes: int
    """As stored."""
    share: float = 1.0
    """Weight among all sizes; the weights need no particular sum."""

    def __post_init__(self) -> None:
        check_range("sizes.bytes", self.bytes, 1, MAX_BYTES)
        check_range("sizes.share", self.share, 0, 1_000_000)


@dataclass(frozen=True, slots=True)
class GzipShare:
    """Compressed files."""

    share: float = 0.0
    """Share of all files, 0 to 1."""
    ratio: float = 8.0
    """Bytes of NDJSON for each byte as stored."""

    def __post_init__(self) -> None:
        check_range("gzip.share", self.share, 0, 1)
        check_range("gzip.ratio", self.ratio, 1, 1000)


@dataclass(frozen=True, slots=True)
class Burst:
    """Minutes in which more files arrive than the curve says; the number of a day stays the same."""

    start: str
    """``HH:MM``, local."""
    minutes: int = 30
    factor: float = 4.0
    """Multiple of the curve's rate."""

    def __post_init__(self) -> None:
        minutes_of_day("bursts.start", self.start)
        check_range("bursts.minutes", self.minutes, 1, 1440)
        check_range("bursts.factor", self.factor, 0.001, 10_000)


@dataclass(frozen=True, slots=True)
class Failures:
    """A day on which work fails."""

    share: float = 0.0
    """Share of runs, and of the stream's manifests, that fail once and are converted again; 0 to 1."""

    def __post_init__(self) -> None:
        check_range("failures.share", self.share, 0, 1)


@dataclass(frozen=True, slots=True)
class Profile:
    """The files of the 24 hours before a night; each day is assumed to be like it."""

    files: int
    """Number of files."""
    sizes: tuple[SizeShare, ...]
    date: str = "2026-11-18"
    """``YYYY-MM-DD``: local date on which the night begins."""
    datasets: int = 1
    """Number of datasets, each with the same share of the files."""
    curve: tuple[float, ...] = (1.0,) * 24
    """Weights of the 24 local hours, from midnight on."""
    urgent_share: float = 0.0
    """Share of the files that are urgent, 0 to 1."""
    gzip: GzipShare = field(default_factory=GzipShare)
    bursts: tuple[Burst, ...] = ()
    failures: Failures = field(default_factory=Failures)

    def __post_init__(self) -> None:
        check_range("files", self.files, 1, 100_000_000)
        check_range("datasets", self.datasets, 1, 1000)
        check_range("urgent_share", self.urgent_share, 0, 1)
        if not self.sizes or not sum(size.share for size in self.sizes):
            raise InvalidSettingsError("sizes", [], "expected one [[sizes]] or more with bytes and a share above 0")
        if len(self.sizes) * self.datasets * 4 > MAX_CLASSES:
            expected = f"expected at most {MAX_CLASSES // 4}: sizes x datasets"
            raise InvalidSettingsError("sizes", len(self.sizes) * self.datasets, expected)
        if len(self.curve) != 24 or min(self.curve) < 0 or not sum(self.curve):
            expected = "expected 24 weights from 0 up, of which one at least is above 0"
            raise InvalidSettingsError("curve", list(self.curve), expected)
        try:
            date.fromisoformat(self.date)
        except ValueError as error:
            raise InvalidSettingsError("date", self.date, "expected a date such as 2026-11-18") from error


def load_profile(path: Path) -> Profile:
    """The profile of a TOML file (UTF-8).

    Raises
    ------
    InvalidInputError
        The file cannot be read, or has a wrong key or value, which the message names with what is allowed.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"profile {path} cannot be read: {error}; docs/sizing.md shows one") from error
    return parse_profile(body)


def parse_profile(body: dict[str, Any]) -> Profile:
    """The profile of a parsed TOML document. Raises ``InvalidInputError`` as ``load_profile`` does."""
    try:
        profile: Profile = build(Profile, body, "")
    except InvalidSettingsError as error:
        raise InvalidInputError(f"profile: {error.key} = {error.value!r} is wrong: {error.expected}") from error
    return profile
