"""Settings of records that Amazon Data Firehose writes into the input bucket: ``records``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from lake.errors import InvalidSettingsError
from lake.settings.declaration import DATASET_NAME, KMS_KEY, like, span
from lake.settings.routing import FOLDER, DatasetRule, InputSettings

FAILED_RECORDS = "firehose-failed-records/"
"""Prefix in the input bucket for records that Firehose could not deliver. Its keys belong to no dataset."""

KINESIS_STREAM_ARN = re.compile(r"arn:aws:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[a-zA-Z0-9_.-]+")
MSK_CLUSTER_ARN = re.compile(r"arn:aws:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[a-zA-Z0-9_.-]+/[a-zA-Z0-9-]+")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's own limits for the name of a topic."""
EXTENSION = ".ndjson.gz"
"""Suffix of the keys. Firehose compresses, because fewer bytes cost less in every later step."""
BUFFER_MIB = 64
"""MiB of uncompressed records that end an object before ``records.buffer_seconds``; Firehose takes more if it is late.
Objects of this size are large enough for the lanes, and are half of what Firehose can hold."""
MAX_NAMES = 49
"""Maximum length of ``stage`` and ``records.name`` together. The delivery stream ``hybrid-router-<stage>-<name>`` has
at most 64 characters (Amazon Data Firehose API Reference, CreateDeliveryStream)."""
_NAME = like(DATASET_NAME, "lower case letters, digits and underscore")


@dataclass(frozen=True, slots=True)
class RecordsRule:
    """One ``[[records]]``: a Kinesis stream, or a topic of Amazon MSK, that Firehose writes into the input bucket."""

    name: Annotated[str, _NAME]
    """Name of the delivery stream within the stage. A new source needs a new name: AWS replaces the delivery stream,
    and two cannot have the same name."""
    dataset: Annotated[str, _NAME]
    """Dataset of the records. A rule of [[datasets]] must give the keys this name."""
    kinesis_stream: Annotated[str, like(KINESIS_STREAM_ARN, "arn:aws:kinesis:… of a stream", or_empty=True)] = ""
    """ARN of the Kinesis stream; either it or records.msk_cluster is set."""
    kinesis_kms_key: Annotated[str, KMS_KEY] = ""
    """ARN of the KMS key that encrypts the Kinesis stream, for the right to read it; empty: not your own key."""
    msk_cluster: Annotated[str, like(MSK_CLUSTER_ARN, "arn:aws:kafka:… of a cluster", or_empty=True)] = ""
    """ARN of the Amazon MSK cluster, provisioned or serverless, which must use IAM authentication, and which Firehose
    must reach by a private VPC connection."""
    msk_topic: Annotated[str, like(TOPIC, "the name of a Kafka topic", or_empty=True)] = ""
    """Name of the topic; set together with records.msk_cluster."""
    # Amazon Data Firehose API Reference, BufferingHints.
    buffer_seconds: Annotated[int, span(0, 900, "seconds")] = 60
    """Maximum time for which Firehose collects records for one object; 64 MiB of records end it sooner."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        stream, cluster, topic = "records.kinesis_stream", "records.msk_cluster", "records.msk_topic"
        if bool(self.kinesis_stream) == bool(self.msk_cluster):
            expected = f"expected either {stream}, or {cluster} with {topic}"
            yield InvalidSettingsError(stream, self.kinesis_stream, expected)
        if self.msk_cluster and not self.msk_topic:
            yield InvalidSettingsError(topic, "", f"expected the topic of {cluster}")
        if self.msk_topic and not self.msk_cluster:
            yield InvalidSettingsError(topic, self.msk_topic, f"allowed only with {cluster}")
        if self.kinesis_kms_key and not self.kinesis_stream:
            expected = f"allowed only with {stream}"
            yield InvalidSettingsError("records.kinesis_kms_key", self.kinesis_kms_key, expected)

    def folder(self, rules: Sequence[DatasetRule]) -> str | None:
        """Prefix, with a slash at its end, whose keys the rules give to the dataset; None if they give none."""
        for rule in rules:
            if rule.name not in (FOLDER, self.dataset):
                continue
            folder = f"{rule.prefix_of(self.dataset)}records/{self.name}/"
            names = (other.dataset_of(self.sample_key(folder)) for other in rules)
            is_usable = "!{" not in folder and not folder.startswith(FAILED_RECORDS)
            if is_usable and next((name for name in names if name is not None), None) == self.dataset:
                return folder
        return None

    def sample_key(self, folder: str) -> str:
        """A key such as Firehose makes under a folder, to try rules on."""
        return f"{folder}2026/01/31/23/hybrid-router-1-2026-01-31-23-59-59-{self.name}{EXTENSION}"


def records_conflicts(
    records: Sequence[RecordsRule], stage: str, rules: Sequence[DatasetRule], files: InputSettings
) -> Iterator[InvalidSettingsError]:
    """Conflicts of delivery streams: a name used twice, keys that no rule takes, rules for undelivered records."""
    for rule in rules:
        if rule.prefix.startswith(FAILED_RECORDS):
            expected = f"the rule {rule.name!r} never matches: no dataset has keys under {FAILED_RECORDS}; remove it"
            yield InvalidSettingsError("datasets.prefix", rule.prefix, expected)
    for number, record in enumerate(records):
        if record.name in {earlier.name for earlier in records[:number]}:
            yield InvalidSettingsError("records.name", record.name, "expected a name that no other [[records]] has")
        if len(stage) + len(record.name) > MAX_NAMES:
            expected = f"expected at most {MAX_NAMES} characters together with the stage, which is {stage!r}"
            yield InvalidSettingsError("records.name", record.name, expected)
        folder = record.folder(rules)
        if folder is None:
            expected = "expected a dataset to which a rule of [[datasets]] gives keys: add one with a prefix of its own"
            yield InvalidSettingsError("records.dataset", record.dataset, expected)
        elif files.suffix_of(record.sample_key(folder)) is None:
            expected = f"expected a suffix of the keys of [[records]]: add {EXTENSION!r}"
            yield InvalidSettingsError("input.suffixes", list(files.suffixes), expected)
