"""``[[records]]``: one source each, a name of its own, and keys that the rules of the datasets take."""

from typing import Any

import pytest

from infra.names import StackNames
from lake.dataset_rules import matching_rule
from lake.settings import DatasetRule, RecordsRule, parse_settings
from lake.settings.records import FAILED_RECORDS, MAX_NAMES
from tests.unit.lake.test_settings import keys as wrong_keys

STREAM = "arn:aws:kinesis:eu-central-1:111122223333:stream/clicks"
CLUSTER = "arn:aws:kafka:eu-central-1:111122223333:cluster/shop/1234abcd-12ab-34cd-56ef-1234567890ab-s1"
KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
CLICKS = {"name": "clicks", "dataset": "clicks", "kinesis_stream": STREAM}
TOPIC = {"name": "clicks", "dataset": "clicks", "msk_cluster": CLUSTER, "msk_topic": "clicks.v1"}


def settings(*records: dict[str, Any], **others: Any) -> Any:
    return parse_settings({"stage": "prod", "records": list(records), **others})


def test_a_stream_and_a_topic_are_sources() -> None:
    assert settings(CLICKS, {**TOPIC, "name": "topic"}).records == (
        RecordsRule("clicks", "clicks", STREAM),
        RecordsRule("topic", "clicks", msk_cluster=CLUSTER, msk_topic="clicks.v1"),
    )


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"records": [{**CLICKS, "dataset": "{folder}"}]}, "records.dataset"),
        ({"records": [{**CLICKS, "kinesis_stream": ""}]}, "records.kinesis_stream"),
        ({"records": [{**CLICKS, "msk_cluster": CLUSTER, "msk_topic": "a"}]}, "records.kinesis_stream"),
        ({"records": [{**CLICKS, "msk_topic": "a"}]}, "records.msk_topic"),
        ({"records": [{**TOPIC, "kinesis_kms_key": KEY}]}, "records.kinesis_kms_key"),
        ({"records": [{**TOPIC, "msk_cluster": "arn:aws:kafka:eu-central-1:1:cluster/shop"}]}, "records.msk_cluster"),
        ({"records": [{**TOPIC, "msk_topic": ""}]}, "records.msk_topic"),
        # The rules would not take the keys.
        ({"datasets": [{"name": "orders", "prefix": "orders/"}]}, "records.dataset"),
        ({"datasets": [{"name": "orders"}]}, "records.dataset"),
        # Firehose takes !{ for an expression of its own.
        ({"datasets": [{"name": "clicks", "prefix": "a!{b/"}]}, "records.dataset"),
        ({"datasets": [{"name": "clicks", "prefix": FAILED_RECORDS}]}, "datasets.prefix"),
        ({"input": {"suffixes": [".ndjson", ".gz.ndjson"]}}, "input.suffixes"),
        ({"stage": "x" * 43, "records": [{**CLICKS, "name": "n" * (MAX_NAMES - 42)}]}, "records.name"),
        # Two delivery streams cannot have one name.
        ({"records": [CLICKS, TOPIC]}, "records.name"),
        # The rule takes only what was not delivered.
        ({"datasets": [{"name": "failed", "prefix": f"{FAILED_RECORDS}clicks/"}]}, "datasets.prefix"),
    ],
)
def test_a_wrong_value_is_reported_with_its_key(body: dict[str, Any], key: str) -> None:
    assert wrong_keys({"stage": "prod", "records": [CLICKS], **body})[0] == key


def test_every_wrong_value_of_several_records_is_found_at_once() -> None:
    # Given wrong values in two of three, and elsewhere
    records = [{**CLICKS, "name": "A", "buffer_seconds": -1}, CLICKS, {**TOPIC, "msk_topic": "?"}]
    found = wrong_keys({"stage": "X", "records": records, "datasets": [{"name": "B"}, {"name": "c"}]})
    # Then
    assert found == ["stage", "datasets.name", "records.name", "records.buffer_seconds", "records.msk_topic"]


def test_the_longest_name_fits_firehose() -> None:
    stage, name = "s" * 30, "n" * (MAX_NAMES - 30)
    longest = settings({**CLICKS, "name": name}, stage=stage)
    # CreateDeliveryStream, DeliveryStreamName
    assert len(StackNames.of(longest).delivery_stream(name)) == 64


@pytest.mark.parametrize(
    ("rules", "folder"),
    [
        ([("{folder}", "")], "clicks/records/web/"),
        ([("{folder}", "landing/")], "landing/clicks/records/web/"),
        ([("clicks", "web-")], "web-records/web/"),
        ([("clicks", "")], "records/web/"),
        # An earlier rule takes what the first one that names the dataset would get.
        ([("orders", "a/records/"), ("clicks", "a/"), ("clicks", "b/")], "b/records/web/"),
        ([("orders", "clicks/r"), ("{folder}", "")], None),
    ],
)
def test_the_folder_is_one_that_the_rules_give_to_the_dataset(rules: list[tuple[str, str]], folder: str | None) -> None:
    record = RecordsRule("web", "clicks", STREAM)
    assert record.folder([DatasetRule(*rule) for rule in rules]) == folder


def test_what_was_not_delivered_belongs_to_no_dataset() -> None:
    for rule in (DatasetRule("rest"), DatasetRule("rest", FAILED_RECORDS[:4]), DatasetRule("{folder}")):
        assert matching_rule(f"{FAILED_RECORDS}web/processing-failed/a.ndjson", [rule]) == (None, "")
