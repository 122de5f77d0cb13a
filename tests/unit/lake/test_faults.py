"""Who is responsible for an error, by its code, its status and its type."""

import errno
import io
import ssl
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse, HeadersDict
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import create_parser
from botocore.response import StreamingBody
from pyarrow.lib import ArrowMemoryError
from urllib3 import HTTPResponse

from lake.faults import Fault, can_pass, judge, refuse_proxies

OWN_KEY, OTHER_KEY = (f"arn:aws:kms:eu-central-1:111122223333:key/{name}" for name in ("1234abcd", "mrk-5678"))


def answer(code: str, status: int, message: str = "", operation: str = "GetObject") -> ClientError:
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)  # type: ignore[arg-type]


def cancelled(*reasons: str) -> ClientError:
    response = {
        "Error": {"Code": "TransactionCanceledException", "Message": ""},
        "ResponseMetadata": {"HTTPStatusCode": 400},
        "CancellationReasons": [{"Code": reason} for reason in reasons],
    }
    return ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]


def expired_credentials() -> Exception:
    """botocore's error about a service that returns expired credentials, or a clock that is ahead."""
    past = {"access_key": "a", "secret_key": "b", "token": "c", "expiry_time": "2026-01-01T00:00:00Z"}
    credentials = RefreshableCredentials.create_from_metadata(past, lambda: past, "container-role")
    with pytest.raises(Exception, match="expired") as caught:
        credentials.get_frozen_credentials()
    return caught.value


def unreadable_answer() -> ClientError:
    """S3's own answer about a missing object whose key has a character that XML cannot have (boto/botocore#3496)."""
    body = b"<Error><Code>NoSuchKey</Code><Key>a&#x7;.json</Key></Error>"
    response = {"status_code": 404, "headers": {"x-amz-request-id": "1"}, "body": body}
    return ClientError(create_parser("rest-xml").parse(response, None), "GetObject")  # type: ignore[arg-type]


class ErrorOfAnEndedDriver(Exception):  # noqa: N818
    """Py4J asks the JVM for the text of a Java error."""

    def __str__(self) -> str:
        raise ConnectionError


PASSES, STAYS = (Fault.ENVIRONMENT, True), (Fault.ENVIRONMENT, False)
"""A person has to act on a fault of the environment that stays."""
FILE, UNKNOWN = (Fault.FILE, False), (Fault.UNKNOWN, False)


@pytest.mark.parametrize(
    ("error", "judgement"),
    [
        (answer("AccessDenied", 403), STAYS),
        (answer("AccessDeniedException", 400), STAYS),
        (answer("SlowDown", 503), PASSES),
        (answer("a future code", 500), PASSES),
        (answer("a future code", 403), STAYS),
        (answer("RequestTimeTooSkewed", 403), PASSES),
        (answer("InvalidClientTokenId", 403), PASSES),
        (answer("NoSuchBucket", 404), STAYS),
        (answer("ResourceNotFoundException", 400), STAYS),
        (answer("PermanentRedirect", 301), STAYS),
        (answer("TemporaryRedirect", 307), PASSES),
        (answer("AuthorizationHeaderMalformed", 400), STAYS),
        (answer("BadDigest", 400, operation="UploadPart"), PASSES),
        (answer("XAmzContentSHA256Mismatch", 400, operation="UploadPart"), PASSES),
        # botocore uses the status as the code of an answer that has none, such as a proxy's.
        *((answer(str(status), status), PASSES) for status in (301, 304, 400, 401, 404, 407, 408, 412, 416)),
        # A proxy's page that is valid XML.
        (answer("", 404), PASSES),
        (answer("IncompleteBody", 400, operation="UploadPart"), PASSES),
        (answer("ExpiredTokenException", 400), PASSES),
        (cancelled("None", "TransactionConflict"), PASSES),
        (cancelled("ThrottlingError", "ConditionalCheckFailed"), PASSES),
        (cancelled("None", "ConditionalCheckFailed"), UNKNOWN),
        (cancelled("None", "ValidationError"), UNKNOWN),
        (cancelled("TransactionConflict", "ValidationError"), UNKNOWN),
        (EndpointConnectionError(endpoint_url="https://s3/AccessDenied/InvalidRange"), PASSES),
        (ReadTimeoutError(endpoint_url="https://s3"), PASSES),
        (IncompleteReadError(actual_bytes=1, expected_bytes=2), PASSES),
        (FlexibleChecksumError(error_msg="the body of the answer has another checksum"), PASSES),
        (NoCredentialsError(), PASSES),
        (OSError(errno.ENOSPC, "no space left on device"), PASSES),
        (OSError(errno.EMFILE, "too many open files"), PASSES),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found"), PASSES),
        (OSError(errno.EROFS, "read-only file system"), PASSES),
        (ArrowMemoryError("malloc of size 64 failed"), UNKNOWN),
        (RuntimeError("can't start new thread"), PASSES),
        (expired_credentials(), PASSES),
        (RuntimeError("a file with the line: can't start new thread"), UNKNOWN),
        (ErrorOfAnEndedDriver(), UNKNOWN),
        (OSError("a file that pyarrow cannot read has no number"), UNKNOWN),
        (answer("NoSuchKey", 404), FILE),
        (answer("404", 404, operation="HeadObject"), FILE),
        (unreadable_answer(), UNKNOWN),
        # The object can have a key that only its writer may use.
        (answer("400", 400, operation="HeadObject"), STAYS),
        (answer("InvalidObjectState", 403), FILE),
        (answer("KMS.DisabledException", 400), STAYS),
        (answer("InvalidRequest", 400), FILE),
        (answer("InvalidRequest", 400, operation="UploadPart"), UNKNOWN),
        (answer("InvalidArgument", 400, "AccessDenied InvalidRange"), UNKNOWN),
        (ParamValidationError(report="AccessDenied"), UNKNOWN),
        (ValueError("AccessDenied"), UNKNOWN),
    ],
)
def test_an_error_is_judged_by_its_structure(error: Exception, judgement: tuple[Fault, bool]) -> None:
    assert (judge(error), can_pass(error)) == judgement


@pytest.mark.parametrize(
    ("service", "operation", "status"),
    [("s3", "list_buckets", 200), ("s3", "list_buckets", 404), ("cloudformation", "describe_stacks", 200)],
)
def test_an_answer_of_a_proxy_is_a_network_error(service: str, operation: str, status: int) -> None:
    # Given a client, and a proxy that answers instead of the service
    session: Any = refuse_proxies(boto3.Session("key", "secret", region_name="eu-central-1"))
    client = session.client(service)
    body: Any = HTTPResponse(io.BytesIO(b"<html>Log in</html>"), preload_content=False)
    headers: Any = HeadersDict({"Content-Type": "text/html"})
    page = AWSResponse("https://aws", status, headers, body)
    client.meta.events.register("before-send", lambda **_: page)
    # When / Then
    with pytest.raises(HTTPClientError, match="a proxy has answered"):
        getattr(client, operation)()


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (f"{OWN_KEY} is disabled.", Fault.ENVIRONMENT),
        (f"{OWN_KEY}0 is disabled.", Fault.FILE),
        (f"Key '{OTHER_KEY}' does not exist", Fault.FILE),
        (f"{OTHER_KEY} is pending deletion.", Fault.FILE),
        ("the key is disabled", Fault.ENVIRONMENT),
    ],
)
def test_the_key_of_the_whole_input_is_not_a_files_fault(message: str, fault: Fault) -> None:
    assert judge(answer("KMS.DisabledException", 400, message), (OWN_KEY,)) == fault
    # If the stack has no key for its input, the uploader of an object chooses its key.
    assert judge(answer("KMS.DisabledException", 400, message), ()) == Fault.FILE


REFUSED = "User: arn:aws:sts::111122223333:assumed-role/jobs/x is not authorized to perform: {} on resource: {} because"


@pytest.mark.parametrize(
    ("message", "keys", "fault"),
    [
        (REFUSED.format("kms:Decrypt", OTHER_KEY), (OWN_KEY,), Fault.FILE),
        (REFUSED.format("kms:Decrypt", f'"{OTHER_KEY}"'), (OWN_KEY,), Fault.FILE),
        (REFUSED.format("kms:Decrypt", OTHER_KEY), (), Fault.FILE),
        (REFUSED.format("kms:Decrypt", OTHER_KEY), None, Fault.ENVIRONMENT),
        (REFUSED.format("kms:Decrypt", OWN_KEY), (OWN_KEY,), Fault.ENVIRONMENT),
        (REFUSED.format("kms:Decrypt", OTHER_KEY), (OWN_KEY, OTHER_KEY), Fault.ENVIRONMENT),
        (REFUSED.format("s3:GetObject", f"arn:aws:s3:::input/orders/{OTHER_KEY}"), (OWN_KEY,), Fault.ENVIRONMENT),
        (
            REFUSED.format("s3:GetObject", f"arn:aws:s3:::input/{REFUSED.format('kms:Decrypt', OTHER_KEY)}"),
            (OWN_KEY,),
            Fault.ENVIRONMENT,
        ),
        ("Access Denied", (OWN_KEY,), Fault.ENVIRONMENT),
    ],
)
def test_a_key_that_is_not_of_the_input_is_the_choice_of_the_uploader(
    message: str, keys: tuple[str, ...] | None, fault: Fault
) -> None:
    assert judge(answer("AccessDenied", 403, message), keys) == fault


class DamagedBody(io.BytesIO):
    def read(self, _: int | None = None) -> bytes:
        raise ssl.SSLError(1, "decryption failed or bad record mac")


def test_an_error_of_tls_in_a_body_passes() -> None:
    raw: Any = HTTPResponse(DamagedBody(), preload_content=False)
    with pytest.raises(Exception, match="bad record mac") as caught:
        StreamingBody(raw, 1).read()
    assert can_pass(caught.value)
