"""Settings of what decides the lane of a file: ``input``, ``datasets``, ``urgent``, ``peak``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import InvalidSettingsError
from lake.settings.checks import BUCKET_NAME, DATASET_NAME, check_choice, check_pattern, minutes_of_day

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FOLDER = "{folder}"


@dataclass(frozen=True, slots=True)
class InputSettings:
    """Where files land."""

    bucket: str = ""
    """Name of an existing bucket; empty: the stack creates one with versions."""
    suffixes: tuple[str, ...] = tuple(
        f"{text}{codec}" for codec in ("", ".gz", ".bz2", ".zst") for text in (".ndjson", ".jsonl", ".json")
    )
    """A key that ends in none of these, in any case, is IGNORED, with this reason in the ledger.

    By default NDJSON as text and in every compression that the reader knows; the reader itself goes by content.
    """

    def __post_init__(self) -> None:
        if self.bucket:
            check_pattern("input.bucket", self.bucket, BUCKET_NAME, "the name of an S3 bucket, or an empty text")
        if not self.suffixes or not all(suffix.startswith(".") for suffix in self.suffixes):
            raise InvalidSettingsError("input.suffixes", list(self.suffixes), "expected suffixes that begin with a dot")

    def suffix_of(self, name: str) -> str | None:
        """The longest of ``suffixes`` that ``name``, a key or a file name, ends in, in any case; None: in none."""
        lower = name.lower()
        matching = [suffix for suffix in self.suffixes if lower.endswith(suffix.lower())]
        return max(matching, key=len, default=None)


@dataclass(frozen=True, slots=True)
class DatasetRule:
    """Keys that begin with ``prefix`` belong to dataset ``name``; the first rule that matches wins."""

    name: str
    """Lower case letters, digits, underscore; or ``{folder}``: the folder that follows the prefix."""
    prefix: str = ""
    peak: bool = True
    """Whether peak hours send this dataset through the stream lane."""

    def __post_init__(self) -> None:
        if self.name != FOLDER:
            check_pattern(
                "datasets.name", self.name, DATASET_NAME, "lower case letters, digits and underscore, or {folder}"
            )


@dataclass(frozen=True, slots=True)
class UrgentSettings:
    """Files that go through the stream lane at any hour."""

    keys: tuple[str, ...] = ("*/urgent/*",)
    """Shell patterns over the whole key; ``*`` matches slashes as well."""


@dataclass(frozen=True, slots=True)
class PeakSettings:
    """Local hours in which files go through the stream lane; both empty: never."""

    hours: tuple[str, ...] = ("08:00-20:00",)
    """``HH:MM-HH:MM`` in the deployment's time zone; may pass midnight."""
    days: tuple[str, ...] = DAYS[:5]

    def __post_init__(self) -> None:
        for hours in self.hours:
            start, _, end = hours.partition("-")
            if minutes_of_day("peak.hours", start) == minutes_of_day("peak.hours", end):
                raise InvalidSettingsError("peak.hours", hours, "expected a start that differs from the end")
        for day in self.days:
            check_choice("peak.days", day, DAYS)
