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


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (answer("AccessDenied", 403), Fault.ENVIRONMENT),
        (answer("SlowDown", 503), Fault.ENVIRONMENT),
        (answer("a code of tomorrow", 500), Fault.ENVIRONMENT),
        (answer("NoSuchBucket", 404), Fault.ENVIRONMENT),
        (answer("PermanentRedirect", 301), Fault.ENVIRONMENT),
        (answer("AuthorizationHeaderMalformed", 400), Fault.ENVIRONMENT),
        (answer("BadDigest", 400, operation="UploadPart"), Fault.ENVIRONMENT),
        (answer("XAmzContentSHA256Mismatch", 400, operation="UploadPart"), Fault.ENVIRONMENT),
        # botocore uses the status as the code of an answer that has none, such as a proxy's.
        *((answer(str(status), status), Fault.ENVIRONMENT) for status in (301, 304, 400, 401, 404, 407, 408, 412, 416)),
        # A proxy's page that is valid XML.
        (answer("", 404), Fault.ENVIRONMENT),
        (answer("IncompleteBody", 400, operation="UploadPart"), Fault.ENVIRONMENT),
        (answer("a code of tomorrow", 403), Fault.ENVIRONMENT),
        (answer("ExpiredTokenException", 400), Fault.ENVIRONMENT),
        (cancelled("None", "TransactionConflict"), Fault.ENVIRONMENT),
        (cancelled("ThrottlingError", "ConditionalCheckFailed"), Fault.ENVIRONMENT),
        (cancelled("None", "ConditionalCheckFailed"), Fault.UNKNOWN),
        (cancelled("TransactionConflict", "ValidationError"), Fault.UNKNOWN),
        (EndpointConnectionError(endpoint_url="https://s3/AccessDenied/InvalidRange"), Fault.ENVIRONMENT),
        (IncompleteReadError(actual_bytes=1, expected_bytes=2), Fault.ENVIRONMENT),
        (FlexibleChecksumError(error_msg="the body of the answer has another checksum"), Fault.ENVIRONMENT),
        (NoCredentialsError(), Fault.ENVIRONMENT),
        (OSError(errno.ENOSPC, "no space left on device"), Fault.ENVIRONMENT),
        (OSError(errno.EMFILE, "too many open files"), Fault.ENVIRONMENT),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found"), Fault.ENVIRONMENT),
        (OSError(errno.EROFS, "read-only file system"), Fault.ENVIRONMENT),
        (ArrowMemoryError("malloc of size 64 failed"), Fault.UNKNOWN),
        (RuntimeError("can't start new thread"), Fault.ENVIRONMENT),
        (expired_credentials(), Fault.ENVIRONMENT),
        (RuntimeError("a file with the line: can't start new thread"), Fault.UNKNOWN),
        (ErrorOfAnEndedDriver(), Fault.UNKNOWN),
        (OSError("a file that pyarrow cannot read has no number"), Fault.UNKNOWN),
        (answer("NoSuchKey", 404), Fault.FILE),
        (answer("404", 404, operation="HeadObject"), Fault.FILE),
        (unreadable_answer(), Fault.UNKNOWN),
        (answer("400", 400, operation="HeadObject"), Fault.ENVIRONMENT),
        (answer("InvalidObjectState", 403), Fault.FILE),
        (answer("KMS.DisabledException", 400), Fault.ENVIRONMENT),
        (answer("InvalidRequest", 400), Fault.FILE),
        (answer("InvalidRequest", 400, operation="UploadPart"), Fault.UNKNOWN),
        (answer("InvalidArgument", 400, "AccessDenied InvalidRange"), Fault.UNKNOWN),
        (ParamValidationError(report="AccessDenied"), Fault.UNKNOWN),
        (ValueError("AccessDenied"), Fault.UNKNOWN),
    ],
)
def test_an_error_is_judged_by_its_structure(error: Exception, fault: Fault) -> None:
    assert judge(error) == fault


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_of_a_proxy_is_a_network_error(status: int) -> None:
    # Given a client of S3, and a proxy that answers instead
    session = boto3.Session("key", "secret", region_name="eu-central-1")
    refuse_proxies(session)
    s3: Any = session.client("s3")
    body: Any = HTTPResponse(io.BytesIO(b"<html>Log in</html>"), preload_content=False)
    headers: Any = HeadersDict({"Content-Type": "text/html"})
    page = AWSResponse("https://s3", status, headers, body)
    s3.meta.events.register("before-send", lambda **_: page)
    # When / Then
    with pytest.raises(HTTPClientError, match="a proxy has answered"):
        s3.head_object(Bucket="lake", Key="a")


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


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (answer("SlowDown", 503), True),
        # The object can have a key that only its writer may use.
        (answer("400", 400, operation="HeadObject"), False),
        (answer("404", 404, operation="HeadObject"), False),
        (answer("404", 404), True),
        (unreadable_answer(), False),
        (answer("a code of tomorrow", 500), True),
        (answer("a code of tomorrow", 403), False),
        (answer("RequestTimeTooSkewed", 403), True),
        (answer("InvalidClientTokenId", 403), True),
        (answer("AccessDeniedException", 400), False),
        (answer("ResourceNotFoundException", 400), False),
        (answer("KMS.DisabledException", 400), False),
        (answer("PermanentRedirect", 301), False),
        (answer("TemporaryRedirect", 307), True),
        (answer("NoSuchKey", 404), False),
        (cancelled("None", "TransactionConflict"), True),
        (cancelled("None", "ValidationError"), False),
        (NoCredentialsError(), True),
        (ReadTimeoutError(endpoint_url="https://s3"), True),
        (ValueError("SlowDown"), False),
    ],
)
def test_transient_faults_are_distinguished_from_those_that_need_a_person(error: Exception, passes: bool) -> None:
    assert can_pass(error) == passes


class DamagedBody(io.BytesIO):
    def read(self, _: int | None = None) -> bytes:
        raise ssl.SSLError(1, "decryption failed or bad record mac")


def test_an_error_of_tls_in_a_body_passes() -> None:
    raw: Any = HTTPResponse(DamagedBody(), preload_content=False)
    with pytest.raises(Exception, match="bad record mac") as caught:
        StreamingBody(raw, 1).read()
    assert can_pass(caught.value)
