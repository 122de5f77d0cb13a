"""The stand-in for Firehose is held to the format that AWS documents, and acts with the roles of the template."""

import gzip
import re
from typing import Any
from unittest.mock import Mock

import pytest
from ministack.services import firehose  # type: ignore[import-untyped]

from local.emulator_patches import delivery_streams
from local.emulator_patches.delivery_streams import object_body, object_key
from local.errors import NotAllowedError

STREAM = "arn:aws:kinesis:eu-central-1:111122223333:stream/clicks"
DOCUMENTED = r"hybrid-router-dev-clicks-3-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""<stream>-<version>-<year>-<month>-<day>-<hour>-<minute>-<second>-<uuid>: Amazon Data Firehose Developer Guide,
"Configure Amazon S3 object name format"."""
DELIMITER = {"Enabled": True, "Processors": [{"Type": "AppendDelimiterToRecord"}]}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"Prefix": "a/"}, rf"a/\d{{4}}/\d\d/\d\d/\d\d/{DOCUMENTED}"),
        ({"Prefix": "a/!{timestamp:yyyy-MM}/", "CompressionFormat": "GZIP"}, rf"a/\d{{4}}-\d\d/{DOCUMENTED}\.gz"),
        (
            {"Prefix": "a/!{timestamp:HH}/", "CompressionFormat": "GZIP", "FileExtension": ".ndjson.gz"},
            rf"a/\d\d/{DOCUMENTED}\.ndjson\.gz",
        ),
    ],
)
def test_a_key_is_the_documented_one(config: dict[str, Any], key: str) -> None:
    assert re.fullmatch(key, object_key("hybrid-router-dev-clicks", 3, config))


@pytest.mark.parametrize(
    ("processing", "body"),
    [(None, b"ab\n"), ({**DELIMITER, "Enabled": False}, b"ab\n"), (DELIMITER, b"a\nb\n\n")],
)
def test_a_newline_follows_each_record_where_it_is_configured(processing: dict[str, Any] | None, body: bytes) -> None:
    config = {"ProcessingConfiguration": processing}
    assert object_body(config, [b"a", b"b\n"]) == body
    assert gzip.decompress(object_body({**config, "CompressionFormat": "GZIP"}, [b"a", b"b\n"])) == body


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What the patched service writes: the bucket and the body of each object."""
    found: list[tuple[str, bytes]] = []
    monkeypatch.setattr(firehose, "_put_s3_object", lambda bucket, _, body: found.append((bucket, body)))
    monkeypatch.setattr(firehose, "ingest_from_kinesis_source", None)
    config = {"BucketARN": "arn:aws:s3:::landing", "RoleARN": "writer", "ProcessingConfiguration": DELIMITER}
    streams = [
        {
            "name": "clicks",
            "version": 1,
            "arn": "arn",
            "kinesis_source": {"KinesisStreamARN": STREAM, "RoleARN": "reader"},
            "destinations": [{"config": config}],
        },
        {"name": "topic", "kinesis_source": None, "destinations": []},
    ]
    monkeypatch.setattr(firehose, "_streams", dict(enumerate(streams)))
    delivery_streams.patch()
    return found


def test_records_wait_while_a_role_is_refused(
    written: list[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a role without a right
    monkeypatch.setattr(delivery_streams, "check_role", Mock(side_effect=NotAllowedError("not authorized")))
    firehose.ingest_from_kinesis_source(STREAM, [("p", b"1")])
    firehose.ingest_from_kinesis_source(f"{STREAM}-of-others", [("p", b"3")])
    assert written == []
    # When it has the right, and another record comes
    monkeypatch.setattr(delivery_streams, "check_role", lambda *_: None)
    firehose.ingest_from_kinesis_source(STREAM, [("p", b"2")])
    # Then both are delivered
    assert written == [("landing", b"1\n2\n")]
