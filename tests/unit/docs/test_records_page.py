"""docs/records.md: its settings are valid, and its programs work as described."""

import base64
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from lake.settings import parse_settings
from lake.settings.records import EXTENSION, FAILED_RECORDS
from local.isolation import BUCKET_PLACE

PAGE = (Path(__file__).parents[3] / "docs" / "records.md").read_text(encoding="utf-8")
REGION = "eu-central-1"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def region(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    return REGION


def test_the_settings_are_valid_and_the_key_of_the_page_is_under_their_folder() -> None:
    (text,) = blocks("toml")
    settings = parse_settings({"stage": "prod", **tomllib.loads(text)})
    (key,) = blocks("text")
    assert key.startswith(f"{settings.records[0].folder(settings.datasets)}2026/11/23/10/hybrid-router-prod-clicks-1-")
    assert key.strip().endswith(EXTENSION)


@mock_aws
def test_the_producer_puts_each_event_as_a_record(region: str) -> None:
    producer, _ = blocks("python")
    kinesis = boto3.client("kinesis", region)
    kinesis.create_stream(StreamName="clicks", ShardCount=1)
    # When
    names: dict[str, Any] = {}
    exec(producer, names)
    # Then
    (shard,) = kinesis.list_shards(StreamName="clicks")["Shards"]
    start = kinesis.get_shard_iterator(StreamName="clicks", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")[
        "ShardIterator"
    ]
    found = [json.loads(record["Data"]) for record in kinesis.get_records(ShardIterator=start)["Records"]]
    assert found == names["events"]


@mock_aws
def test_records_that_were_not_delivered_become_lines_of_the_dataset(region: str) -> None:
    _, repair = blocks("python")
    s3 = boto3.client("s3", region)
    s3.create_bucket(Bucket="landing-zone-1", CreateBucketConfiguration=BUCKET_PLACE)
    records = [b'{"n": 1}', b'{"n": 2}']
    documents = [{"errorCode": "E", "rawData": base64.b64encode(record).decode()} for record in records]
    body = "".join(f"{json.dumps(document)}\n" for document in documents).encode()
    key = f"{FAILED_RECORDS}payments/processing-failed/2026/a-1"
    s3.put_object(Bucket="landing-zone-1", Key=key, Body=body)
    # When
    exec(repair, {})

    # Then
    def written() -> list[bytes]:
        versions = s3.list_object_versions(Bucket="landing-zone-1", Prefix="payments/failed-records/")["Versions"]
        found = [
            s3.get_object(Bucket="landing-zone-1", Key=item["Key"], VersionId=item["VersionId"]) for item in versions
        ]
        return sorted(item["Body"].read() for item in found)

    assert written() == [b'{"n": 1}\n{"n": 2}\n']
    # And `failures` no longer lists them
    assert s3.list_objects_v2(Bucket="landing-zone-1", Prefix=FAILED_RECORDS)["KeyCount"] == 0
    # And a call after one that was interrupted before the deletion puts no second version, which would be
    # another arrival, but Firehose can write the same key again with more records
    s3.put_bucket_versioning(Bucket="landing-zone-1", VersioningConfiguration={"Status": "Enabled"})
    for again, expected in ((body, 1), (body * 2, 2)):
        s3.put_object(Bucket="landing-zone-1", Key=key, Body=again)
        exec(repair, {})
        assert len(written()) == expected
        assert s3.list_objects_v2(Bucket="landing-zone-1", Prefix=FAILED_RECORDS)["KeyCount"] == 0
    assert written()[-1] == written()[0] * 2
