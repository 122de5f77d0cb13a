"""Whose fault a failed request is: judged by error code, HTTP status and type of the error, never by its text."""

from __future__ import annotations

import errno
from enum import Enum, auto

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NoConnectionError


class Fault(Enum):
    """Whose fault an error is."""

    ENVIRONMENT = auto()
    """Rights, credentials, network, load or disk: the same request can succeed later."""
    FILE = auto()
    """Proven to belong to the object that was asked for: its absence, its bytes, its storage class or its key."""
    UNKNOWN = auto()


ENVIRONMENT_CODES = frozenset(
    {
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "KMS.ThrottlingException",
        "NoSuchBucket",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "SlowDown",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""Amazon S3 API Reference, "Error responses"; Amazon DynamoDB Developer Guide, "Error handling"."""
FILE_CODES = frozenset(
    {
        "404",
        "405",
        "412",
        "416",
        "InvalidObjectState",
        "InvalidRange",
        "KMS.DisabledException",
        "KMS.KMSInvalidStateException",
        "KMS.NotFoundException",
        "MethodNotAllowed",
        "NoSuchKey",
        "NoSuchVersion",
        "PreconditionFailed",
    }
)
"""The same reference; MethodNotAllowed is the answer for a version that is a delete marker."""
ENVIRONMENT_ERRORS = (
    CredentialRetrievalError,
    HTTPClientError,
    NoConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)
DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


def judge(error: BaseException) -> Fault:
    """Whose fault the error is; pure."""
    if isinstance(error, ClientError):
        return _judge_answer(error)
    if isinstance(error, ENVIRONMENT_ERRORS):
        return Fault.ENVIRONMENT
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return Fault.ENVIRONMENT
    return Fault.UNKNOWN


def _judge_answer(error: ClientError) -> Fault:
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in ENVIRONMENT_CODES or status == TOO_MANY_REQUESTS or status >= SERVER_ERROR:
        return Fault.ENVIRONMENT
    return Fault.FILE if code in FILE_CODES else Fault.UNKNOWN
