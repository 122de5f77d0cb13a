"""Settings of records that Amazon Data Firehose writes into the input bucket: ``records``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lake.errors import InvalidSettingsError
from lake.settings.checks import DATASET_NAME, check_choice, check_kms_key, check_pattern, check_range
from lake.settings.routing import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.settings.routing import DatasetRule, InputSettings, UrgentSettings

FAILED_RECORDS = "firehose-failed-records/"
"""In the input bucket: what Firehose writes about records that it could not deliver. They belong to no dataset."""

KINESIS_STREAM_ARN = re.compile(r"arn:aws[a-z-]*:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[a-zA-Z0-9_.-]+")
MSK_CLUSTER_ARN = re.compile(r"arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[a-zA-Z0-9_.-]+/[a-zA-Z0-9-]+")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's own limit of a topic's name."""
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
GZIP = "gzip"
EXTENSIONS = {GZIP: ".ndjson.gz", "none": ".ndjson"}
"""``records.compression`` -> what the keys end in."""
PRIVATE = "private"
MAX_NAMES = 49
"""Of ``stage`` and ``records.name`` together: both are in the delivery stream's name, ``hybrid-router-<stage>-<name>``
of at most 64 characters (Amazon Data Firehose API Reference, CreateDeliveryStream)."""


@dataclass(frozen=True, slots=True)
class RecordsRule:
    """One ``[[records]]``: a Kinesis stream, or a topic of Amazon MSK, that Firehose writes into the input bucket."""

    name: str
    """Name of the delivery stream within the stage: lower case letters, digits, underscore. Another source needs
    another name: AWS replaces the delivery stream, and two of them cannot have one name."""
    dataset: str
    """Dataset of the records. A rule of [[datasets]] has to give the keys this name."""
    kinesis_stream: str = ""
    """ARN of the Kinesis stream, or empty; either it or ``records.msk_cluster`` is set."""
    kinesis_kms_key: str = ""
    """ARN of the KMS key that encrypts the Kinesis stream, for the right to read it; empty: none of yours does."""
    msk_cluster: str = ""
    """ARN of the Amazon MSK cluster, provisioned or serverless, that lets in roles (IAM authentication); or empty."""
    msk_topic: str = ""
    """Name of its topic; set together with ``records.msk_cluster``."""
    msk_connectivity: str = PRIVATE
    """How Firehose reaches the cluster: private, by a VPC connection that the cluster's policy allows; or public."""
    msk_read_from: str = ""
    """Time (UTC, ``YYYY-MM-DDTHH:MM:SSZ``) from which messages of the topic are read; empty: from the moment at which
    the delivery stream is ready. ``1970-01-01T00:00:00Z`` reads all that the topic has."""
    urgent: bool = False
    """Whether the keys get the folder ``urgent/``, which a pattern of ``urgent.keys`` has to match. Otherwise the lane
    is decided as for every other file."""
    buffer_seconds: int = 60
    """How long Firehose collects records for one object, at most, ..."""
    buffer_mib: int = 64
    """... and how many MiB of them, before compression; what is reached first ends the object. When Firehose is behind,
    it takes more."""
    compression: str = GZIP
    """Compression of the objects: gzip or none."""

    def __post_init__(self) -> None:
        check_pattern("records.name", self.name, DATASET_NAME, "lower case letters, digits and underscore")
        check_pattern("records.dataset", self.dataset, DATASET_NAME, "lower case letters, digits and underscore")
        self._check_values_of_source()
        # Amazon Data Firehose API Reference, BufferingHints.
        check_range("records.buffer_seconds", self.buffer_seconds, 0, 900)
        check_range("records.buffer_mib", self.buffer_mib, 1, 128)
        check_choice("records.compression", self.compression, EXTENSIONS)
        # Last: find_errors goes on without a wrong ARN, and then there is no source.
        self._check_one_source()

    def _check_values_of_source(self) -> None:
        for key, pattern, expected in (
            ("kinesis_stream", KINESIS_STREAM_ARN, "the ARN of a Kinesis stream, or an empty string"),
            ("msk_cluster", MSK_CLUSTER_ARN, "the ARN of an Amazon MSK cluster, or an empty string"),
            ("msk_topic", TOPIC, "the name of a Kafka topic, or an empty string"),
            ("msk_read_from", MOMENT, "a time such as 2026-11-23T00:00:00Z, or an empty string"),
        ):
            if value := getattr(self, key):
                check_pattern(f"records.{key}", value, pattern, expected)
        check_kms_key("records.kinesis_kms_key", self.kinesis_kms_key)
        check_choice("records.msk_connectivity", self.msk_connectivity, (PRIVATE, "public"))
        if self.msk_read_from:
            try:
                datetime.fromisoformat(self.msk_read_from)
            except ValueError as error:
                expected = "expected a time such as 2026-11-23T00:00:00Z"
                raise InvalidSettingsError("records.msk_read_from", self.msk_read_from, expected) from error

    def _check_one_source(self) -> None:
        if bool(self.kinesis_stream) == bool(self.msk_cluster):
            expected = "expected either records.kinesis_stream, or records.msk_cluster with records.msk_topic"
            raise InvalidSettingsError("records.kinesis_stream", self.kinesis_stream, expected)
        if self.msk_cluster and not self.msk_topic:
            raise InvalidSettingsError("records.msk_topic", "", "expected the topic of records.msk_cluster")
        owners = {"msk_topic": "msk_cluster", "msk_read_from": "msk_cluster", "kinesis_kms_key": "kinesis_stream"}
        for key, owner in owners.items():
            if getattr(self, key) and not getattr(self, owner):
                expected = f"expected it only with records.{owner}"
                raise InvalidSettingsError(f"records.{key}", getattr(self, key), expected)

    @property
    def extension(self) -> str:
        """What the keys of the objects end in."""
        return EXTENSIONS[self.compression]

    def folder(self, rules: Sequence[DatasetRule]) -> str | None:
        """The prefix, with a slash at its end, under which the rules give keys to the dataset; None: there is none."""
        for rule in rules:
            if rule.name not in (FOLDER, self.dataset):
                continue
            folder = f"{rule.prefix_of(self.dataset)}records/{self.name}/{'urgent/' if self.urgent else ''}"
            names = (other.dataset_of(self.sample_key(folder)) for other in rules)
            is_usable = "!{" not in folder and not folder.startswith(FAILED_RECORDS)
            if is_usable and next((name for name in names if name is not None), None) == self.dataset:
                return folder
        return None

    def sample_key(self, folder: str) -> str:
        """A key as Firehose makes it under a folder, to try rules on."""
        return f"{folder}2026/01/31/23/hybrid-router-1-2026-01-31-23-59-59-{self.name}{self.extension}"


def check_records(
    records: Sequence[RecordsRule],
    stage: str,
    rules: Sequence[DatasetRule],
    urgent: UrgentSettings,
    files: InputSettings,
) -> None:
    """Check that every delivery stream has a name of its own, that the rules take its keys as it says, and that no rule
    is for what was not delivered.

    Raises
    ------
    InvalidSettingsError
        For the first that does not fit.
    """
    for rule in rules:
        if rule.prefix.startswith(FAILED_RECORDS):
            expected = f"the rule {rule.name!r} never matches: no dataset has keys under {FAILED_RECORDS}; remove it"
            raise InvalidSettingsError("datasets.prefix", rule.prefix, expected)
    for number, record in enumerate(records):
        if record.name in {earlier.name for earlier in records[:number]}:
            raise InvalidSettingsError("records.name", record.name, "expected a name that no other [[records]] has")
        if len(stage) + len(record.name) > MAX_NAMES:
            expected = f"expected at most {MAX_NAMES} characters together with the stage, which is {stage!r}"
            raise InvalidSettingsError("records.name", record.name, expected)
        folder = record.folder(rules)
        if folder is None:
            expected = "expected a dataset to which a rule of [[datasets]] gives keys: add one with a prefix of its own"
            raise InvalidSettingsError("records.dataset", record.dataset, expected)
        key = record.sample_key(folder)
        if files.suffix_of(key) is None:
            expected = f"expected one whose keys end in one of input.suffixes: add {record.extension!r} there"
            raise InvalidSettingsError("records.compression", record.compression, expected)
        if record.urgent and not any(fnmatchcase(key, pattern) for pattern in urgent.keys):
            expected = f"no pattern of urgent.keys matches keys such as {key}: add '*/urgent/*' there"
            raise InvalidSettingsError("records.urgent", record.urgent, expected)
