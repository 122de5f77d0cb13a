"""The profile of a simulated day: how many files of which sizes arrive when, and their keys."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from lake.compression import INFLATED_RATIO, has_compressed_name
from lake.dataset_rules import matching_rule
from lake.errors import InvalidInputError, InvalidSettingsError
from lake.settings import Settings
from lake.settings.declaration import DATE, Range, build
from lake.settings.routing import FOLDER

MAX_BYTES = 5 << 40
"""Far above the largest object that S3 stores."""
MAX_DATASETS = 10_000


@dataclass(frozen=True, slots=True)
class SizeShare:
    bytes: Annotated[int, Range(1, MAX_BYTES, "bytes"), "Size as stored."]
    share: Annotated[float, Range(0, 1_000_000), "Weight among all sizes; the weights need no particular sum."] = 1.0


@dataclass(frozen=True, slots=True)
class GzipShare:
    share: Annotated[float, Range(0, 1), "Share of the files that are compressed."] = 0.0
    ratio: Annotated[float, Range(1, 1000), "Bytes of NDJSON for each byte as stored."] = INFLATED_RATIO


@dataclass(frozen=True, slots=True)
class Profile:
    """The files of the 24 hours before a night; each day is assumed to be like it."""

    files: Annotated[int, Range(1, 100_000_000), "Number of files."]
    sizes: tuple[SizeShare, ...]
    date: Annotated[str, DATE, "Local date on which the night begins."] = "2026-11-18"
    datasets: Annotated[int, Range(1, MAX_DATASETS), "Number of datasets, each with the same share of the files."] = 1
    curve: Annotated[tuple[float, ...], Range(0, 1e12), "Weights of the 24 local hours, from midnight on."] = (
        1.0,
    ) * 24
    urgent_share: Annotated[float, Range(0, 1), "Share of the files that are urgent."] = 0.0
    gzip: GzipShare = field(default_factory=GzipShare)

    @property
    def as_gzip(self) -> "Profile":
        """The profile of these rows if all of them were in compressed files."""
        sizes = tuple(replace(size, bytes=max(round(size.bytes / self.gzip.ratio), 1)) for size in self.sizes)
        return replace(self, sizes=sizes, gzip=replace(self.gzip, share=1.0))

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        if not self.sizes or not sum(size.share for size in self.sizes):
            yield InvalidSettingsError("sizes", [], "expected one [[sizes]] or more with bytes and a share above 0")
        if len(self.curve) != 24 or not sum(self.curve):
            expected = "expected 24 weights from 0 up, of which one at least is above 0"
            yield InvalidSettingsError("curve", list(self.curve), expected)


SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?) ?([kMGTP]?)B")
UNITS = ("", "k", "M", "G", "T", "P")
URGENT_SHARE = 0.01


def profile_of_sizes(a_day: str, files_of: str, *, urgent: bool) -> Profile:
    """Files of one size that arrive evenly; both sizes in decimal units, such as ``3.5MB``.

    ``urgent``: 1 in 100 of them is urgent. Raises ``InvalidInputError``: a size cannot be read, or they give no valid
    number of files.
    """
    total, size = _parse_size(a_day), _parse_size(files_of)
    files = round(total / max(size, 1))
    return parse_profile({"files": files, "sizes": [{"bytes": size}], "urgent_share": URGENT_SHARE * urgent})


def _parse_size(text: str) -> int:
    found = SIZE.fullmatch(text)
    if found is None:
        raise InvalidInputError(f"{text} is not a size: pass a number with its unit, such as 3.5MB or 2TB")
    return int(float(found[1]) * float(f"1e{3 * UNITS.index(found[2])}") + 0.5)


def load_profile(path: Path) -> Profile:
    """The profile of a TOML file (UTF-8).

    Raises ``InvalidInputError``: the file cannot be read, or has a wrong key or value, which the message names with
    what is allowed.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"profile {path} cannot be read: {error}; docs/sizing.md shows one") from error
    return parse_profile(body)


def parse_profile(body: dict[str, Any]) -> Profile:
    """The profile of a parsed TOML document. Raises ``InvalidInputError`` as ``load_profile`` does."""
    try:
        return build(Profile, body)
    except InvalidSettingsError as error:
        raise InvalidInputError(str(error).replace("settings: ", "profile: ")) from error


NAME = "file"


def file_keys(settings: Settings, datasets: int, *, urgent: bool) -> dict[bool, str]:
    """A key of the dataset that stands for all, and an urgent one; without the suffix of a compression.

    Raises ``InvalidInputError``: the rules of the settings do not give so many datasets, or no key is urgent, or every
    key is.
    """
    named = {rule.name for rule in settings.datasets}
    if FOLDER not in named and len(named) < datasets:
        raise InvalidInputError(
            f"profile: datasets = {datasets} is wrong: the settings name {len(named)}; add [[datasets]], or a rule "
            f"named {FOLDER}"
        )
    files = settings.input
    suffix = min(files.suffixes, key=lambda text: (has_compressed_name(text), files.suffix_of(f"a{text}.gz") is None))
    rule = next((rule for rule in settings.datasets if rule.name == FOLDER), settings.datasets[0])
    folder = f"{rule.prefix}dataset/" if rule.name == FOLDER else rule.prefix
    keys = {False: _checked(settings, f"{folder}{NAME}{suffix}", urgent=False)}
    if urgent:
        keys[True] = _urgent_key(settings, folder, suffix)
    return keys


def _urgent_key(settings: Settings, folder: str, suffix: str) -> str:
    for pattern in settings.urgent.keys:
        for key in (f"{folder}urgent/{NAME}{suffix}", pattern.replace("*", folder, 1).replace("*", NAME + suffix)):
            clean = key.replace("//", "/")
            if fnmatchcase(clean, pattern) and clean.startswith(folder) and clean.endswith(suffix):
                return _checked(settings, clean, urgent=True)
    raise InvalidInputError(
        f"profile: urgent_share is above 0, but no key below {folder} was found that urgent.keys "
        f"({', '.join(settings.urgent.keys) or 'empty'}) makes urgent: set urgent.keys to a pattern such as */urgent/*"
    )


def _checked(settings: Settings, key: str, *, urgent: bool) -> str:
    rule, _ = matching_rule(key, settings.datasets)
    is_urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
    if rule is None or (is_urgent and not urgent):
        raise InvalidInputError(
            f"profile: the rules of the settings do not take the key {key} as one of a simulated dataset; pass "
            "settings whose rules do"
        )
    return key
