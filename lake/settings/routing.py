"""Settings that decide the lane of a file: ``input``, ``datasets``, ``urgent``, ``peak``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lake.errors import InvalidSettingsError
from lake.settings.checks import (
    BUCKET_NAME,
    DATASET_NAME,
    check_choice,
    check_kms_key,
    check_pattern,
    check_range,
    minutes_of_day,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FOLDER = "{folder}"
"""Name of a rule that takes the dataset's name from the key."""
ARN_CHARACTERS = 90
"""Assumed for an ARN of the input bucket in a policy, without the prefix."""
MAX_POLICY_CHARACTERS = 36_000
"""Room for prefixes in the policies of a role: IAM allows 10 managed ones of 6,144 characters; statements are moved to
them as a whole, so each is at least two thirds full."""
MAX_NAME_CHARACTERS = 63
TAG_PATTERN = re.compile(r"[^=\x00-\x1f\x7f]+=[^\x00-\x1f\x7f]*")
METADATA_PATTERN = re.compile(r"[^=A-Z\x00-\x1f\x7f]+=[^\x00-\x1f\x7f]*")


@dataclass(frozen=True, slots=True)
class InputSettings:
    """The input bucket."""

    bucket: str = ""
    """Name of an existing bucket; empty: the stack creates one with versioning."""
    kms_key: str = ""
    """ARN of the KMS key that encrypts the objects of your own bucket, for the right to read them; empty: none does."""
    suffixes: tuple[str, ...] = tuple(
        f"{text}{codec}" for codec in ("", ".gz", ".bz2", ".zst") for text in (".ndjson", ".jsonl", ".json")
    )
    """A key that ends in none of these, in any case, is recorded as IGNORED and not converted.

    By default NDJSON as text and in every compression that the reader knows. The suffix does not choose the
    decompression: the reader detects it by content.
    """

    keep_days: int = 0
    """Days after which S3 deletes a file of the stack's own bucket, converted or not; 0: never. What was deleted cannot
    be converted again: no backfill, ``reprocess`` or ``verify`` of its hour."""
    event_window_seconds: int = 5
    """Time for which Lambda collects the events of new files, for both lanes: a longer one makes fewer manifests, each
    of more files, and each file waits for half of it on average."""

    def __post_init__(self) -> None:
        # AWS Lambda API, MaximumBatchingWindowInSeconds; with more than 10 events of a batch it is at least 1.
        check_range("input.event_window_seconds", self.event_window_seconds, 1, 300)
        check_range("input.keep_days", self.keep_days, 0, 36_500)
        if self.keep_days and self.bucket:
            expected = "expected 0 with input.bucket: the lifecycle of a bucket of yours is yours"
            raise InvalidSettingsError("input.keep_days", self.keep_days, expected)
        if self.bucket:
            check_pattern("input.bucket", self.bucket, BUCKET_NAME, "the name of an S3 bucket, or an empty string")
        check_kms_key("input.kms_key", self.kms_key)
        if self.kms_key and not self.bucket:
            expected = "expected it only with input.bucket: encryption.kms_key encrypts the stack's own bucket"
            raise InvalidSettingsError("input.kms_key", self.kms_key, expected)
        if not self.suffixes or not all(suffix.startswith(".") for suffix in self.suffixes):
            raise InvalidSettingsError("input.suffixes", list(self.suffixes), "expected suffixes that begin with a dot")

    def suffix_of(self, name: str) -> str | None:
        """The longest of ``suffixes`` that ``name``, a key or a file name, ends in, in any case; None: in none."""
        lower = name.lower()
        matching = [suffix for suffix in self.suffixes if lower.endswith(suffix.lower())]
        return max(matching, key=len, default=None)


@dataclass(frozen=True, slots=True)
class DatasetUrgentSettings:
    """Files of one dataset that are urgent besides those whose key matches ``urgent.keys``; each rule is enough."""

    tags: tuple[str, ...] = ()
    """Tags, each as ``name=value``: the value is a shell pattern, the name ends at the first ``=``, both are
    case-sensitive. A file that has one of these tags when it arrives is urgent; empty: none is. Each file of the
    dataset costs one request (GetObjectTagging), unless its key or its size makes it urgent."""
    metadata: tuple[str, ...] = ()
    """The same of the object's own metadata (``x-amz-meta-...``), whose names S3 keeps in lower case: one request
    (HeadObject) for each file of the dataset, unless its key, its size or its tags make it urgent."""
    min_bytes: int = 0
    """Size in bytes from which a file is urgent, together with ``max_bytes`` if that is set too; 0: not limited ..."""
    max_bytes: int = 0
    """... and size in bytes up to which it is; 0: not limited. With neither, no file is urgent by its size. Sizes cost
    no request."""

    def __post_init__(self) -> None:
        for tag in self.tags:
            check_pattern("datasets.urgent.tags", tag, TAG_PATTERN, "name=value, such as priority=high")
        for item in self.metadata:
            expected = "name=value with the name in lower case, such as priority=high"
            check_pattern("datasets.urgent.metadata", item, METADATA_PATTERN, expected)
        check_range("datasets.urgent.min_bytes", self.min_bytes, 0, 1 << 50)
        check_range("datasets.urgent.max_bytes", self.max_bytes, 0, 1 << 50)
        if 0 < self.max_bytes < self.min_bytes:
            expected = f"expected at least datasets.urgent.min_bytes ({self.min_bytes}), or 0"
            raise InvalidSettingsError("datasets.urgent.max_bytes", self.max_bytes, expected)

    def takes_size(self, size: int) -> bool:
        """Whether a file of ``size`` bytes is urgent by its size."""
        if not self.min_bytes and not self.max_bytes:
            return False
        return self.min_bytes <= size and (not self.max_bytes or size <= self.max_bytes)


@dataclass(frozen=True, slots=True)
class DatasetRule:
    """One ``[[datasets]]``: which keys belong to a dataset. The first rule that matches a key decides."""

    name: str
    """Name of the dataset: lower case letters, digits, underscore; or ``{folder}``: the folder after the prefix, as
    ``web_logs`` for ``web-logs/``. One dataset has the files of one folder: those of another one that would get the
    same name are recorded as IGNORED. After ``{folder}``, a rule with a name takes the files without a folder."""
    prefix: str = ""
    """The rule matches keys that begin with it; empty: all keys."""
    peak: bool = True
    """Whether peak hours send files of this dataset to the stream lane."""
    urgent: DatasetUrgentSettings = field(default_factory=DatasetUrgentSettings)

    def __post_init__(self) -> None:
        if self.name != FOLDER:
            check_pattern(
                "datasets.name", self.name, DATASET_NAME, "lower case letters, digits and underscore, or {folder}"
            )

    def dataset_of(self, key: str) -> str | None:
        """The dataset that this rule gives to a key; empty: its folder gives no name; None: the rule does not match."""
        if self.name == FOLDER:
            folder = self.folder_of(key)
            return None if folder is None else name_of_folder(folder)
        return self.name if key.startswith(self.prefix) else None

    def folder_of(self, key: str) -> str | None:
        """The folder after the prefix of a rule ``{folder}``; None: the rule does not match, or names its dataset."""
        if self.name != FOLDER or not key.startswith(self.prefix):
            return None
        folder, slash, _ = key.removeprefix(self.prefix).partition("/")
        return folder if slash else None

    def prefix_of(self, folder: str) -> str:
        """What the keys begin with that this rule takes; a rule ``{folder}``: those of one folder."""
        return f"{self.prefix}{folder}/" if self.name == FOLDER else self.prefix

    def takes_all_keys_of(self, later: DatasetRule) -> bool:
        """Whether no key is left for a rule after this one."""
        if not later.prefix.startswith(self.prefix):
            return False
        # A rule {folder} takes a key only where a slash follows its prefix.
        return self.name != FOLDER or later.name == FOLDER or "/" in later.prefix.removeprefix(self.prefix)


def name_of_folder(folder: str) -> str:
    """The name of a dataset for a folder: itself if it is valid, else the closest valid name; empty: it has none.

    Lower case; every run of other characters than letters a to z and digits becomes one underscore, and none is at an
    end; ``d_`` goes before a digit at the beginning. Different folders can have one name: ``claimed_by`` of the ledger
    decides which of them gets the dataset.
    """
    if DATASET_NAME.fullmatch(folder):
        return folder
    name = re.sub(r"[^a-z0-9]+", "_", folder.lower()).strip("_")
    name = f"d_{name}" if name[:1].isdigit() else name
    return name if len(name) <= MAX_NAME_CHARACTERS else ""


def check_order(rules: Sequence[DatasetRule]) -> None:
    """Raise ``InvalidSettingsError`` for a rule that can never match, because one before it takes all of its keys."""
    for number, rule in enumerate(rules):
        for earlier in rules[:number]:
            if earlier.takes_all_keys_of(rule):
                raise InvalidSettingsError(
                    "datasets.prefix",
                    rule.prefix,
                    f"the rule {rule.name!r} never matches, because the rule {earlier.name!r} with the prefix "
                    f"{earlier.prefix!r} before it takes all of its keys: put it before that one, or remove it",
                )


def check_policy_room(rules: Sequence[DatasetRule]) -> None:
    """Raise ``InvalidSettingsError`` if the rights to read tags and metadata do not fit in a role."""
    names = [rule.prefix for rule in rules for values in (rule.urgent.tags, rule.urgent.metadata) if values]
    characters = sum(len(prefix) + ARN_CHARACTERS for prefix in names)
    if characters > MAX_POLICY_CHARACTERS:
        expected = (
            f"expected at most {MAX_POLICY_CHARACTERS} characters of the prefixes of rules with urgent.tags or "
            f"urgent.metadata, each with {ARN_CHARACTERS} more: use fewer of these rules, or shorter prefixes"
        )
        raise InvalidSettingsError("datasets.prefix", characters, expected)


@dataclass(frozen=True, slots=True)
class UrgentSettings:
    """Files that go to the stream lane at any hour."""

    keys: tuple[str, ...] = ("*/urgent/*",)
    """Shell patterns for the whole key, case-sensitive; ``*`` matches slashes as well. A file whose key matches one is
    urgent; empty: none is."""


@dataclass(frozen=True, slots=True)
class PeakSettings:
    """Local hours in which files go to the stream lane."""

    hours: tuple[str, ...] = ("08:00-20:00",)
    """Windows ``HH:MM-HH:MM`` in ``time_zone``; one may pass midnight. Empty: there are no peak hours."""
    days: tuple[str, ...] = DAYS[:5]
    """Days on which the windows begin: ``mon`` to ``sun``. Empty: there are no peak hours."""

    def __post_init__(self) -> None:
        for hours in self.hours:
            start, _, end = hours.partition("-")
            if minutes_of_day("peak.hours", start) == minutes_of_day("peak.hours", end):
                raise InvalidSettingsError("peak.hours", hours, "expected a start that differs from the end")
        for day in self.days:
            check_choice("peak.days", day, DAYS)
