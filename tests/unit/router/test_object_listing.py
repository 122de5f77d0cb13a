"""A listing read by the parser of the functions' sessions is that of botocore's own."""

from functools import cache
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from router.services import new_session

REGION = "us-east-1"
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
READ = ("Key", "Size", "ETag", "LastModified")
TIME = "2026-11-20T09:30:00.000Z"
PLAIN = f"<Contents><Key>a</Key><LastModified>{TIME}</LastModified><ETag>&quot;0f&quot;</ETag><Size>7</Size></Contents>"


@pytest.mark.parametrize(
    "objects",
    [
        "",
        PLAIN + PLAIN.replace("<Size>", "<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><Size>"),
        PLAIN.replace("&quot;0f&quot;", '"0f-2"') + "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>",
        PLAIN + PLAIN.replace(">a<", ">a&amp;b&#233;<"),
        PLAIN + PLAIN.replace("</Size>", "</Size><Owner><ID>x</ID></Owner>"),
        "<Contents>\n<Key>late</Key>\n<Size>1</Size></Contents>",
    ],
    ids=["none", "plain", "an ETag in quotes", "an encoded key", "members of a member", "other members"],
)
def test_every_way_to_write_an_object_is_read_as_by_botocore(objects: str) -> None:
    # Given the same answer for both
    body = f"<ListBucketResult xmlns='{NAMESPACE}'><Name>lake</Name>{objects}</ListBucketResult>".encode()
    expected, found = (answered(s3, body) for s3 in clients())
    # When, Then
    for page in (expected, found):
        page["Contents"] = [{name: item.get(name) for name in READ} for item in page.get("Contents", [])]
        page.pop("ResponseMetadata")
    assert found == expected


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
        response = AWSResponse(request.url, 200, HTTPHeaders(), raw(body))
        response.headers["x-amz-request-id"] = "id"
        return response

    s3.meta.events.register("before-send", answer)
    try:
        return s3.list_objects_v2(Bucket="lake")
    finally:
        s3.meta.events.unregister("before-send", answer)
