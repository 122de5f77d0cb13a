"""Settings that decide the lane of a file: ``input``, ``datasets``, ``urgent``, ``peak``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from lake.errors import InvalidSettingsError
from lake.settings.declaration import DATASET_NAME, KMS_KEY, like, one_of, span
from lake.time import TIME_OF_DAY, minutes_of_day

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HIVE, ICEBERG = "hive", "iceberg"
MAX_ARRIVALS_PER_INVOCATION = 1000
"""Maximum number of events of one invocation of ``route``."""
FOLDER = "{folder}"
"""Name of a rule that takes the dataset's name from the key's folder."""
ARN_CHARACTERS = 90
"""Assumed length of an ARN of the input bucket in a policy, without the prefix."""
MAX_POLICY_CHARACTERS = 36_000
"""Room for prefixes in a role's policies: IAM allows 10 managed ones of 6,144 characters, and tags and metadata have
policies of their own. A prefix is in one policy, so all but the last two are at least four fifths full."""
BUCKET_NAME = re.compile(
    r"(?!\d{1,3}(\.\d{1,3}){3}$)(?!.*(\.[.-]|-\.))[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!--x-s3)(?<!-s3alias)"
)
"""A bucket's name, which is not like an IP address (Amazon S3 User Guide, "General purpose bucket naming rules").
Directory buckets and aliases of access points are excluded, because they send no events."""
TAG_PATTERN = re.compile(r"[^=\x00-\x1f\x7f]+=[^\x00-\x1f\x7f]*")
RULE_NAME = re.compile(rf"{re.escape(FOLDER)}|{DATASET_NAME.pattern}")
PREFIX = re.compile(r"(?!s3://)(?:.*[^*])?", re.DOTALL)
METADATA_PATTERN = re.compile(r"[^=A-Z\x00-\x1f\x7f]+=[^\x00-\x1f\x7f]*")


@dataclass(frozen=True, slots=True)
class InputSettings:
    """The input bucket."""

    bucket: Annotated[str, like(BUCKET_NAME, "the name of a general-purpose bucket", or_empty=True)] = ""
    """Name of an existing bucket; empty: the stack creates one with versioning."""
    kms_key: Annotated[str, KMS_KEY] = ""
    """ARN of the KMS key that encrypts the objects of your own bucket, for the right to read them; empty: no key."""
    suffixes: Annotated[
        tuple[str, ...], like(re.compile(r"\..*"), "a suffix that begins with a dot", or_empty=True)
    ] = tuple(f"{text}{codec}" for codec in ("", ".gz", ".bz2", ".zst") for text in (".ndjson", ".jsonl", ".json"))
    """A file whose key ends in none of these, in upper or lower case, is recorded as IGNORED, as are files in
    _temporary/, .spark-staging- and .hive-staging folders; an empty suffix takes every other key. The reader detects
    the compression by content."""
    keep_days: Annotated[int, span(0, 36_500, "days")] = 0
    """Days after which S3 deletes a file of the stack's own bucket, converted or not, and a replaced version 35 days or
    more after its replacement; 0: never. A deleted file cannot be converted again: no backfill, reprocess or verify of
    its hour."""
    # AWS Lambda API, MaximumBatchingWindowInSeconds; at least 1 for batches of more than 10 events.
    event_window_seconds: Annotated[int, span(1, 300, "seconds")] = 5
    """Time for which Lambda collects the events of new files, for both lanes: a longer time makes fewer and larger
    manifests, and each file waits for half of it on average."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        if self.keep_days and self.bucket:
            expected = "expected 0 with input.bucket: you manage the lifecycle of your own bucket"
            yield InvalidSettingsError("input.keep_days", self.keep_days, expected)
        if self.kms_key and not self.bucket:
            expected = "allowed only with input.bucket: encryption.kms_key encrypts the stack's own bucket"
            yield InvalidSettingsError("input.kms_key", self.kms_key, expected)
        if not self.suffixes:
            yield InvalidSettingsError("input.suffixes", [], "expected at least one suffix")

    def suffix_of(self, name: str) -> str | None:
        """The longest of ``suffixes`` with which ``name``, a key or a file name, ends, in any case.

        None if it ends with none of them, or is the name of a folder or of a temporary file.
        """
        lower = name.lower()
        found = (suffix for suffix in self.suffixes if lower.endswith(suffix.lower()))
        return None if name.endswith("/") or is_temporary(name) else max(found, key=len, default=None)


def is_temporary(key: str) -> bool:
    """Whether Spark, Hadoop or Hive writes files under such a key before it copies them to their final keys."""
    return any(folder in f"/{key}" for folder in ("/_temporary/", "/.spark-staging-", "/.hive-staging"))


@dataclass(frozen=True, slots=True)
class DatasetUrgentSettings:
    """Makes files of one dataset urgent in addition to ``urgent.keys``; each rule is enough."""

    tags: Annotated[tuple[str, ...], like(TAG_PATTERN, "name=value, such as priority=high")] = ()
    """Tags, each as name=value: the value is a shell pattern, the name ends at the first =, both are case-sensitive. A
    file that has one of these tags when it arrives is urgent. Each file of the dataset costs one request
    (GetObjectTagging), unless its key or its size makes it urgent."""
    metadata: Annotated[
        tuple[str, ...], like(METADATA_PATTERN, "name=value with the name in lower case, such as priority=high")
    ] = ()
    """Items of the object's own metadata (x-amz-meta-...), written as the tags; S3 keeps their names in lower case.
    Each file of the dataset costs one request (HeadObject), unless its key, its size or its tags make it urgent."""
    min_bytes: Annotated[int, span(0, 1 << 50, "bytes")] = 0
    """Size from which a file is urgent, up to max_bytes if that is set too; 0: no lower limit. With neither, no file is
    urgent by its size. Sizes cost no request."""
    max_bytes: Annotated[int, span(0, 1 << 50, "bytes")] = 0
    """Size up to which a file is urgent; 0: no upper limit."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        if 0 < self.max_bytes < self.min_bytes:
            expected = f"expected at least datasets.urgent.min_bytes ({self.min_bytes}), or 0"
            yield InvalidSettingsError("datasets.urgent.max_bytes", self.max_bytes, expected)

    def takes_size(self, size: int) -> bool:
        if not self.min_bytes and not self.max_bytes:
            return False
        return self.min_bytes <= size and (not self.max_bytes or size <= self.max_bytes)


@dataclass(frozen=True, slots=True)
class DatasetRule:
    """One ``[[datasets]]``: which keys belong to a dataset. The first rule that matches a key decides."""

    name: Annotated[str, like(RULE_NAME, "lower case letters, digits and underscore, or {folder}")]
    """Name of the dataset; or {folder}: the folder after the prefix, as web_logs for web-logs/. One dataset has the
    files of one folder: files of another folder that would get the same name are recorded as IGNORED. After {folder}, a
    rule with a name takes the files without a folder."""
    prefix: Annotated[str, like(PREFIX, "the beginning of keys, without s3:// and without a * at the end")] = ""
    """The rule matches keys that begin with this prefix; empty: all keys."""
    peak: bool = True
    """Whether peak hours send files of this dataset to the stream lane."""
    table: Annotated[str, one_of((HIVE, ICEBERG))] = HIVE
    """Table of the dataset in the catalog. hive: over the folders of its hours; readers can see replaced rows for
    sweep.grace_minutes. iceberg: an Apache Iceberg table of the database that ends with _tables; readers see a whole
    publish or none of it. All rules {folder} have the same value, and so do all rules of one dataset."""
    urgent: DatasetUrgentSettings = field(default_factory=DatasetUrgentSettings)

    def dataset_of(self, key: str) -> str | None:
        """The dataset that this rule gives to a key; empty if its folder gives no name; None if it does not match."""
        if self.name == FOLDER:
            folder = self.folder_of(key)
            return None if folder is None else name_of_folder(folder)
        return self.name if key.startswith(self.prefix) else None

    def folder_of(self, key: str) -> str | None:
        """The folder after the prefix of a ``{folder}`` rule; None if the rule does not match or names its dataset."""
        if self.name != FOLDER or not key.startswith(self.prefix):
            return None
        folder, slash, _ = key.removeprefix(self.prefix).partition("/")
        return folder if slash else None

    def prefix_of(self, folder: str) -> str:
        """Prefix of the keys that this rule takes; of a ``{folder}`` rule only the keys in this folder."""
        return f"{self.prefix}{folder}/" if self.name == FOLDER else self.prefix

    def takes_all_keys_of(self, later: "DatasetRule") -> bool:
        """Whether this rule, which comes first, leaves no key for ``later``."""
        if not later.prefix.startswith(self.prefix):
            return False
        # A {folder} rule takes a key only if a slash follows its prefix.
        return self.name != FOLDER or later.name == FOLDER or "/" in later.prefix.removeprefix(self.prefix)


def name_of_folder(folder: str) -> str:
    """The dataset name for a folder: the folder itself if it is valid, else the closest valid name; empty if none is.

    The name is in lower case. Each run of characters other than a to z and digits becomes one underscore, but not at an
    end, and ``d_`` is put before a leading digit. Several folders can have one name: ``Datasets.admit`` of the ledger
    decides which folder gets the dataset.
    """
    if DATASET_NAME.fullmatch(folder):
        return folder
    name = re.sub(r"[^a-z0-9]+", "_", folder.lower()).strip("_")
    name = f"d_{name}" if name[:1].isdigit() else name
    return name if DATASET_NAME.fullmatch(name) else ""


def rule_conflicts(rules: Sequence[DatasetRule]) -> Iterator[InvalidSettingsError]:
    """Conflicts of ``[[datasets]]``: rules that can never match, and rights for which a role has no room."""
    if not rules:
        yield InvalidSettingsError("datasets", [], "expected at least one [[datasets]] with a name")
    # Looked up by prefix, because each start of a function parses the settings, which can have thousands of rules.
    first: dict[tuple[str, bool], DatasetRule] = {}
    for rule in rules:
        if FOLDER in rule.prefix:
            expected = f'expected the part before the folder: name = "{FOLDER}" takes the folder after the prefix'
            yield InvalidSettingsError("datasets.prefix", rule.prefix, expected)
        starts = (rule.prefix[:length] for length in range(len(rule.prefix) + 1))
        found = (first.get((start, is_folder)) for start in starts for is_folder in (False, True))
        earlier = next((item for item in found if item and item.takes_all_keys_of(rule)), None)
        first.setdefault((rule.prefix, rule.name == FOLDER), rule)
        if earlier:
            expected = (
                f"the rule {rule.name!r} never matches, because the rule {earlier.name!r} with the prefix "
                f"{earlier.prefix!r} before it takes all of its keys: put it before that one, or remove it"
            )
            yield InvalidSettingsError("datasets.prefix", rule.prefix, expected)
    tables = {rule.name: rule.table for rule in rules}
    for rule in rules:
        if rule.table != tables[rule.name]:
            expected = f"expected the same value in all rules named {rule.name!r}"
            yield InvalidSettingsError("datasets.table", rule.table, expected)
            break
    names = [rule.prefix for rule in rules for values in (rule.urgent.tags, rule.urgent.metadata) if values]
    characters = sum(len(prefix) + ARN_CHARACTERS for prefix in names)
    if characters > MAX_POLICY_CHARACTERS:
        expected = (
            f"expected at most {MAX_POLICY_CHARACTERS} characters of the prefixes of rules with urgent.tags or "
            f"urgent.metadata, each with {ARN_CHARACTERS} more: use fewer of these rules, or shorter prefixes"
        )
        yield InvalidSettingsError("datasets.prefix", characters, expected)


@dataclass(frozen=True, slots=True)
class UrgentSettings:
    """Files that go to the stream lane at any hour."""

    keys: tuple[str, ...] = ("*/urgent/*",)
    """Shell patterns for the whole key, case-sensitive; * matches slashes as well. A file whose key matches one is
    urgent; empty: no file is urgent by its key."""


def _is_window(hours: str) -> bool:
    start, _, end = hours.partition("-")
    are_times = TIME_OF_DAY.fullmatch(start) and TIME_OF_DAY.fullmatch(end)
    return bool(are_times) and minutes_of_day(end) != minutes_of_day(start) < minutes_of_day("24:00")


@dataclass(frozen=True, slots=True)
class PeakSettings:
    """Local hours in which files go to the stream lane."""

    hours: Annotated[
        tuple[str, ...],
        like(_is_window, "HH:MM-HH:MM such as 08:00-20:00, a start before 24:00 that differs from the end"),
    ] = ("08:00-20:00",)
    """Windows in time_zone; one may pass midnight. Empty: there are no peak hours."""
    days: Annotated[tuple[str, ...], one_of(DAYS)] = DAYS[:5]
    """Days on which the windows begin. Empty: there are no peak hours."""
