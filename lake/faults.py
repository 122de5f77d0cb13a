"""Judges who is at fault for a failed request: by error code, HTTP status and type of the error, never by its text.

The text is used in two places: it names the ARN of a KMS key, and the whole text of a ``RuntimeError`` is compared.
"""

import errno
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, Final

import boto3
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NoConnectionError
from urllib3.exceptions import SSLError


class Fault(Enum):
    ENVIRONMENT = auto()
    """Rights, credentials, network, load, disk or limits: the same request can succeed later."""
    FILE = auto()
    """The fault is proven to be the requested object's: its absence, bytes, storage class or key."""
    UNKNOWN = auto()


class NoAnswer(Enum):
    """A result without an answer: whether the request was applied is not known, so the work is repeated."""

    NO_ANSWER = auto()


NO_ANSWER: Final = NoAnswer.NO_ANSWER
RIGHTS_CODES = frozenset({"403", "AccessDenied", "AccessDeniedException", "AllAccessDisabled"})
"""A permission is missing in the role, in the policy of the bucket, table or key, or above the account."""
CREDENTIAL_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationTokenException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
    }
)
RESOURCE_CODES = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "NoSuchBucket",
        "PermanentRedirect",
        "ResourceNotFoundException",
    }
)
"""A bucket or table does not exist, or is in another region that boto3 could not find out."""
CONFLICT_CODE = "TransactionConflictException"
LOAD_CODES = frozenset(
    {
        "BadDigest",
        "BandwidthLimitExceeded",
        "ConcurrentModificationException",
        "ConditionalRequestConflict",
        "FederationSourceRetryableException",
        "IncompleteBody",
        "InternalError",
        "InternalServerError",
        "InternalServiceException",
        "KMS.ThrottlingException",
        "OperationAborted",
        "OperationTimeoutException",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ResourceNotReadyException",
        "ServiceUnavailable",
        "SlowDown",
        "TemporaryRedirect",
        "Throttling",
        "ThrottlingException",
        CONFLICT_CODE,
        "TransactionInProgressException",
        "XAmzContentSHA256Mismatch",
    }
)
ENVIRONMENT_CODES = RIGHTS_CODES | CREDENTIAL_CODES | RESOURCE_CODES | LOAD_CODES
"""Amazon S3 API Reference, "Error responses"; Amazon DynamoDB Developer Guide, "Error handling"; AWS Glue Web API
Reference, "Exceptions"."""
CANCELLED = "TransactionCanceledException"
CONDITION_REASONS = frozenset({"None", "ConditionalCheckFailed"})
CONFLICT_REASON = "TransactionConflict"
LOAD_REASONS = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", CONFLICT_REASON})
"""Cancellation reasons of a transaction that can be repeated unchanged (DynamoDB API Reference, TransactWriteItems)."""
KEY_CODES = frozenset({"KMS.DisabledException", "KMS.KMSInvalidStateException", "KMS.NotFoundException"})
"""The KMS key of an object, or of the bucket that is written to, was disabled or deleted."""
KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")
REFUSED_RESOURCE = re.compile(r'not authorized to perform: ([a-z0-9-]+):[A-Za-z*]+ on resource:? "?([^" ]+)')
"""Service and resource of a refusal. Only its first match counts, because an object's name may contain these words."""
FILE_CODES = KEY_CODES | {
    "InvalidObjectState",
    "InvalidRange",
    "MethodNotAllowed",
    "NoSuchKey",
    "NoSuchVersion",
    "PreconditionFailed",
}
"""Amazon S3 API Reference, Error codes; MethodNotAllowed is the answer for a version that is a delete marker."""
FOREIGN_KEY_CODE = "InvalidRequest"
"""The answer to GetObject if only the writer of an encrypted object has its key (Amazon S3 User Guide, "Using
server-side encryption with customer-provided keys"). For other requests it has other reasons."""
FILE_ANSWERS = frozenset(
    {("GetObject", FOREIGN_KEY_CODE), ("HeadObject", "404"), ("HeadObject", "405"), ("HeadObject", "412")}
)
"""Operation and code. HeadObject has HTTP statuses as codes, because its answers have no body."""
HEAD_REFUSED = ("HeadObject", "400")
"""Operation and code of the answer to expired credentials. HeadObject of an object whose key only its writer has gets
the same answer, so ``can_pass`` returns False for it."""
CREDENTIAL_ERRORS = (CredentialRetrievalError, NoCredentialsError, PartialCredentialsError, TokenRetrievalError)
NETWORK_ERRORS = (FlexibleChecksumError, HTTPClientError, IncompleteReadError, NoConnectionError, SSLError)
"""``SSLError`` is urllib3's: botocore does not translate it while a body is read."""
DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
MACHINE_ERRORS = DISK_ERRORS | {
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOENT,
    errno.ENOMEM,
    errno.EROFS,
}
"""A limit of the process, or a broken disk. ENOENT: ``tempfile`` reports it if it can write to no folder, and a
temporary folder can be removed. No name of a local file comes from a manifest."""
NO_THREAD = "can't start new thread"
"""The whole text with which Python reports the limit of threads; many other errors have the same type."""
STILL_EXPIRED = "Credentials were refreshed, but the refreshed credentials are still expired."
"""The whole text of botocore's error if a service gives out expired credentials, or if the clock is ahead."""
FORBIDDEN = 403
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


def judge(error: BaseException, input_keys: Collection[str] | None = None) -> Fault:
    """Decides whose fault the error is. Pure.

    ``input_keys`` is ``Settings.input_kms_keys``. If one of these keys was disabled or may not be used, the file is not
    at fault; if its uploader chose another key, it is. With None, any key may be the key of every file.
    """
    if isinstance(error, ClientError):
        return _judge_answer(error, input_keys)
    if isinstance(error, CREDENTIAL_ERRORS + NETWORK_ERRORS):
        return Fault.ENVIRONMENT
    if isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno in MACHINE_ERRORS):
        return Fault.ENVIRONMENT
    # Not a MemoryError: the same file needs as much memory on any machine, and would block the others of its manifest.
    is_known = isinstance(error, RuntimeError) and str(error) in (NO_THREAD, STILL_EXPIRED)
    return Fault.ENVIRONMENT if is_known else Fault.UNKNOWN


def can_pass(error: BaseException) -> bool:
    """Whether the same request can succeed later, with the same permissions and resources. Pure.

    Load, conflicts, network errors and credential errors pass; another invocation may have other credentials. A missing
    permission or table is a fault of the environment as well, but it stays until a person acts.
    """
    if judge(error) != Fault.ENVIRONMENT:
        return False
    if not isinstance(error, ClientError) or error_code(error) in LOAD_CODES | CREDENTIAL_CODES:
        return True
    if (error.operation_name, error_code(error)) == HEAD_REFUSED:
        return False
    return error_code(error) not in RESOURCE_CODES and not is_denial(error)


def refuse_proxies(session: boto3.Session) -> boto3.Session:
    """Make the session's clients raise ``HTTPClientError`` for a proxy's page; returns the session.

    Otherwise such a page looks like a successful PUT, a missing object, or a refusal by AWS.
    """

    def refuse(response_dict: Mapping[str, Any], **_: object) -> None:
        headers = response_dict["headers"]
        page = headers.get("content-type", "").startswith("text/html")
        # An object can be such a page, but its answer has a request id. botocore retries server errors.
        if page and "x-amz-request-id" not in headers and response_dict["status_code"] < SERVER_ERROR:
            raise HTTPClientError(error="a proxy has answered instead of AWS")

    session.events.register("before-parse", refuse)
    return session


def refused_key(error: ClientError) -> str | None:
    """ARN of the KMS key that the caller may not use; None if the answer refuses something else or names no key."""
    refused = REFUSED_RESOURCE.search(_message(error))
    named = KEY_ARN.fullmatch(refused.group(2)) if refused is not None and refused.group(1) == "kms" else None
    return None if named is None else named.group()


def is_denial(error: BaseException) -> bool:
    """Whether a permission is missing or a key cannot be used, so that only a person can change the answer. Pure."""
    if not isinstance(error, ClientError) or error_code(error) in CREDENTIAL_CODES:
        return False
    return error_code(error) in RIGHTS_CODES | KEY_CODES or http_status(error) == FORBIDDEN


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def suppress_codes(*codes: str) -> Iterator[None]:
    """``contextlib.suppress`` for a ``ClientError`` with one of these codes."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise


def http_status(error: ClientError) -> int:
    """The HTTP status of the answer; 0 if it has none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def cancellation_reasons(error: ClientError) -> frozenset[str]:
    """Codes of the reasons why DynamoDB cancelled a transaction; empty for any other answer."""
    reasons: list[dict[str, str]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]
    return frozenset(reason.get("Code", "None") for reason in reasons)


def _message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def _judge_answer(error: ClientError, input_keys: Collection[str] | None) -> Fault:
    code, status = error_code(error), http_status(error)
    if code == CANCELLED:
        reasons = cancellation_reasons(error)
        passing = bool(reasons & LOAD_REASONS) and reasons <= CONDITION_REASONS | LOAD_REASONS
        return Fault.ENVIRONMENT if passing else Fault.UNKNOWN
    if code in KEY_CODES and (input_keys is None or input_keys):
        # KMS names the key by its ARN. An answer that names none proves nothing about the file.
        named = KEY_ARN.search(_message(error))
        is_other = input_keys is not None and named is not None and named.group() not in input_keys
        return Fault.FILE if is_other else Fault.ENVIRONMENT
    if is_denial(error) and input_keys is not None and refused_key(error) not in (None, *input_keys):
        return Fault.FILE
    if code in FILE_CODES or (error.operation_name, code) in FILE_ANSWERS:
        return Fault.FILE
    # If botocore found no code, the code is the status, or empty if a page is valid XML. A proxy's answer has no
    # request id; S3's answer about a key with control characters, which cannot be parsed, has one.
    of_proxy = (not code or code.isdecimal()) and not error.response.get("ResponseMetadata", {}).get("RequestId")
    refused = of_proxy or code in ENVIRONMENT_CODES or (error.operation_name, code) == HEAD_REFUSED
    if refused or status in (FORBIDDEN, TOO_MANY_REQUESTS) or status >= SERVER_ERROR:
        return Fault.ENVIRONMENT
    return Fault.UNKNOWN
