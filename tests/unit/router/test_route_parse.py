"""parse: SQS messages to arrivals, whatever the key."""

import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion
from router.route.events import parse_events
from tests.unit.router.events import message, raw_message, s3_record


def parsed(*records: dict[str, Any]) -> list[ObjectVersion]:
    return [announced.file for announced in parse_events(SQSRecord(message("m1", *records)))]


@pytest.mark.parametrize(
    "key",
    [
        "orders/a+b.ndjson",
        "orders/%41.ndjson",
        "orders/😀.ndjson",
        "orders/line\nbreak.ndjson",
        "orders/" + "😀" * 252 + ".ndjson",
    ],
)
def test_a_key_is_what_was_put(key: str) -> None:
    assert [file.key for file in parsed(s3_record(key))] == [key]


def test_a_key_as_s3_really_encodes_it() -> None:
    # Given: the console's own spelling of "a +ü%.ndjson"
    record = s3_record("x")
    record["s3"]["object"]["key"] = "orders/a+%2B%C3%BC%25.ndjson"
    assert parsed(record)[0].key == "orders/a +ü%.ndjson"


def test_an_arrival_has_normalised_fields() -> None:
    [file] = parsed(s3_record("orders/a.json", time="2026-11-20T09:30:00.5Z", size=7, eTag='"abc"'))
    assert file == ObjectVersion("input", "orders/a.json", "abc", 7, "2026-11-20T09:30:00.500+00:00", "v1")


@pytest.mark.parametrize("version", [None, "null", ""])
def test_without_versions_the_etag_pins_the_object(version: str | None) -> None:
    [file] = parsed(s3_record("orders/a.json", versionId=version))
    assert (file.version_id, file.version) == (None, "etag:0123456789abcdef")


@pytest.mark.parametrize(
    ("event", "files"),
    [("ObjectCreated:Copy", 1), ("ObjectCreated:CompleteMultipartUpload", 1), ("ObjectTagging:Put", 0)],
)
def test_only_events_of_a_creation_announce_a_file(event: str, files: int) -> None:
    assert len(parsed(s3_record("orders/a.json", event=event, size=0))) == files


def test_a_removal_may_lack_size_and_etag() -> None:
    record = s3_record("orders/a.json", event="ObjectRemoved:Delete")
    del record["s3"]["object"]["eTag"], record["s3"]["object"]["size"]
    assert parsed(record, s3_record("orders/b.json"))[0].key == "orders/b.json"


def test_the_test_event_announces_nothing() -> None:
    body = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-11-20T09:30:00.000Z", "Bucket": "input"}
    assert parse_events(SQSRecord(raw_message("m1", json.dumps(body)))) == []


@pytest.mark.parametrize("body", ["no JSON", "[" * 100_000, "[]", '{"Records": [{}]}', '{"Records": [7]}'])
def test_anything_else_names_the_message(body: str) -> None:
    with pytest.raises(InvalidInputError, match="message m1 is not a valid S3 event"):
        parse_events(SQSRecord(raw_message("m1", body)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eTag", None),
        ("eTag", 5),
        ("eTag", ["a"]),
        ("versionId", {"a": 1}),
        ("size", None),
        ("size", float("inf")),
        ("size", -1),
    ],
)
def test_a_value_that_is_missing_or_of_another_type_is_refused(name: str, value: object) -> None:
    record = s3_record("orders/a.json")
    record["s3"]["object"][name] = value
    with pytest.raises(InvalidInputError):
        parsed(record)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "yesterday"])
def test_a_time_that_is_not_a_time_of_utc_is_refused(time: str) -> None:
    with pytest.raises(InvalidInputError, match="message m1 is not a valid S3 event"):
        parsed(s3_record("orders/a.json", time=time))


def test_a_key_that_is_not_utf8_is_refused() -> None:
    record = s3_record("x")
    record["s3"]["object"]["key"] = "orders/%FF.json"
    with pytest.raises(InvalidInputError):
        parsed(record)
