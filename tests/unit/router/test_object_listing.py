"""A listing read by the parser of the functions' sessions is that of botocore's own."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError
from moto import mock_aws

from router.services import new_session

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
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


def test_a_refused_listing_is_the_error_of_botocore(bucket: str) -> None:
    s3 = own_client()
    with pytest.raises(s3.exceptions.NoSuchBucket):
        s3.list_objects_v2(Bucket="missing")


def page(*objects: str) -> bytes:
    return f"<ListBucketResult xmlns='{NAMESPACE}'><Name>lake</Name>{''.join(objects)}</ListBucketResult>".encode()


def object_(key: str = "a", etag: str = "&quot;0f&quot;", **members: str) -> str:
    time = "2026-11-20T09:30:00.000Z"
    texts = {"Key": key, "LastModified": time, "ETag": etag, "Size": "7", "StorageClass": "STANDARD", **members}
    return f"<Contents>{''.join(f'<{name}>{text}</{name}>' for name, text in texts.items())}</Contents>"


PLAIN = object_()
OWNED = object_(Owner="<ID>x</ID><DisplayName>y</DisplayName>")
"""An object with a member that has members."""


@pytest.mark.parametrize(
    "body",
    [
        page(PLAIN),
        page(PLAIN, object_("b", ChecksumAlgorithm="CRC32"), PLAIN),
        page(object_(etag='"0f-2"'), object_(etag="0f")),
        page(object_("a%26b+%C3%BC")),
        page(object_("a&amp;b&#233;")),
        page(PLAIN, OWNED),
        page(object_(etag="&lt;x&gt;")),
        page("<Contents><Size>7</Size><Key>late</Key><ETag>x</ETag></Contents>"),
        page("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>", PLAIN),
        page("<Contents>\n<Key>a</Key>\n<Size>1</Size></Contents>"),
        page(),
    ],
)
def test_every_way_to_write_an_object_is_read_as_by_botocore(body: bytes) -> None:
    # Given the same answer for both
    expected, found = (answered(s3, body) for s3 in clients())
    # When, Then
    assert [{name: item[name] for name in READ if name in item} for item in expected.get("Contents", [])] == found.get(
        "Contents", []
    )
    assert expected.get("CommonPrefixes") == found.get("CommonPrefixes")
    assert expected["Name"] == found["Name"] == "lake"


@pytest.mark.parametrize("body", [b"<Error><Code>InternalError</Code><Message>m</Message></Error>", b"<List", b"\xff"])
def test_an_answer_that_is_no_listing_is_told_by_botocore(body: bytes) -> None:
    for s3 in clients():
        with pytest.raises((ClientError, ResponseParserError)):
            answered(s3, body)


@cache
def clients() -> list[Any]:
    """Botocore's own client, and that of the functions' sessions."""
    options: Any = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": REGION}
    options["config"] = Config(retries={"total_max_attempts": 1})
    return [session.client("s3", **options) for session in (boto3.Session(), new_session())]


def answered(s3: Any, body: bytes) -> Any:
    """The listing of a client whose service answers with this body and status 200."""
    raw = type("Raw", (BytesIO,), {"stream": lambda self, **_: iter([self.read()])})

    def answer(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, 200, HTTPHeaders(), raw(body))

    s3.meta.events.register("before-send", answer)
    try:
        return s3.list_objects_v2(Bucket="lake")
    finally:
        s3.meta.events.unregister("before-send", answer)
