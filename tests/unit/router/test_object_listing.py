"""A listing read by the parser of the functions' sessions is that of botocore's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from router.services import new_session

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
READ = ("Key", "Size", "ETag", "LastModified")
KEYS = ("a&b <c>.parquet", "d ü+%20é.parquet", "e\x0b\U0001f600.parquet", "f/", "g")


@pytest.fixture
def bucket() -> Iterator[str]:
    with mock_aws():
        s3 = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket="lake")
        for size, key in enumerate(KEYS):
            s3.put_object(Bucket="lake", Key=key, Body=b"x" * size)
        yield "lake"


def own_client() -> Any:
    return new_session().client("s3", region_name=REGION)


@pytest.mark.parametrize("request_", [{}, {"MaxKeys": 2}, {"Prefix": "d"}, {"Prefix": "none"}, {"Delimiter": "/"}])
def test_a_page_is_that_of_botocores_parser(bucket: str, request_: dict[str, Any]) -> None:
    # Given, When
    expected: Any = boto3.client("s3", region_name=REGION).list_objects_v2(Bucket=bucket, **request_)
    found = own_client().list_objects_v2(Bucket=bucket, **request_)
    # Then: the objects have fewer members, and everything else is the same
    assert found.get("Contents", []) == [{name: item[name] for name in READ} for item in expected.pop("Contents", [])]
    for page in (expected, found):
        page.pop("ResponseMetadata")
        page.pop("Contents", None)
    assert found == expected


def test_pages_follow_each_other(bucket: str) -> None:
    pages = own_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
    assert [item["Key"] for page in pages for item in page["Contents"]] == sorted(KEYS)


def test_a_refused_listing_is_the_error_of_botocore(bucket: str) -> None:
    s3 = own_client()
    with pytest.raises(s3.exceptions.NoSuchBucket):
        s3.list_objects_v2(Bucket="missing")
