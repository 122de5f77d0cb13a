"""Whose fault a failed request is: judged by error code, HTTP status and type of the error, never by its text.

Of the text only the ARN of a KMS key is used, as the name of a resource, and the whole text of a ``RuntimeError``.
"""

import errno
import re
from collections.abc import Collection
from enum import Enum, auto
from typing import Final

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
    """Proven to belong to the object that was asked for: its absence, its bytes, its storage class or its key."""
    UNKNOWN = auto()


class NoAnswer(Enum):
    """Stands for a result: no request was answered, so it is not known what was applied, and the work is repeated."""

    NO_ANSWER = auto()


NO_ANSWER: Final = NoAnswer.NO_ANSWER
RIGHTS_CODES = frozenset({"403", "AccessDenied", "AccessDeniedException", "AllAccessDisabled"})
"""A permission is missing: in the role, in the policy of the bucket, table or key, or above the account."""
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
"""A bucket or table is not there, or not in this region and boto3 did not find out in which."""
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
"""Cancellation reasons of a transaction that can be repeated as it is (DynamoDB API Reference, TransactWriteItems)."""
KEY_CODES = frozenset({"KMS.DisabledException", "KMS.KMSInvalidStateException", "KMS.NotFoundException"})
"""The KMS key of an object, or of the bucket that is written to, was disabled or deleted."""
KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")
REFUSED_RESOURCE = re.compile(r'not authorized to perform: ([a-z0-9-]+):[A-Za-z*]+ on resource:? "?([^" ]+)')
"""Service and resource of a refusal. Only its first match counts: an object's name may hold the same words."""
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
"""The answer to GetObject for an object that is encrypted by a key which only its writer has (Amazon S3 User Guide,
"Using server-side encryption with customer-provided keys"); other requests get it for other reasons."""
FILE_ANSWERS = frozenset(
    {("GetObject", FOREIGN_KEY_CODE), ("HeadObject", "404"), ("HeadObject", "405"), ("HeadObject", "412")}
)
"""Operation and code. HeadObject has statuses in place of codes, because its answers have no body."""
HEAD_REFUSED = ("HeadObject", "400")
"""Operation and code of the answer to expired credentials. An object with a key that only its writer has gets the same,
so ``can_pass`` does not count it."""
CREDENTIAL_ERRORS = (CredentialRetrievalError, NoCredentialsError, PartialCredentialsError, TokenRetrievalError)
NETWORK_ERRORS = (FlexibleChecksumError, HTTPClientError, IncompleteReadError, NoConnectionError, SSLError)
"""botocore does not translate urllib3's ``SSLError``, that of a body."""
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
"""A limit of the process, or a broken disk. ENOENT: ``tempfile`` hides by it why it could write to no folder, and a
temporary folder can be removed; the name of no local file comes from a manifest."""
NO_THREAD = "can't start new thread"
"""The whole text by which Python reports a limit of threads; many other errors have its type."""
STILL_EXPIRED = "Credentials were refreshed, but the refreshed credentials are still expired."
"""The text by which botocore reports a service that gives out credentials of the past, or a clock that is ahead."""
FORBIDDEN = 403
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


def judge(error: BaseException, input_keys: Collection[str] | None = None) -> Fault:
    """Whose fault the error is; pure.

    ``input_keys`` is ``Settings.input_kms_keys``: a file is not at fault when one of these keys was disabled or may not
    be used, and is at fault when its uploader has chosen another key. None: its key may be that of every file.
    """
    if isinstance(error, ClientError):
        return _judge_answer(error, input_keys)
    if isinstance(error, CREDENTIAL_ERRORS + NETWORK_ERRORS):
        return Fault.ENVIRONMENT
    if isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno in MACHINE_ERRORS):
        return Fault.ENVIRONMENT
    # Not a MemoryError: the same file asks any machine for as much, and would hold up the others of its manifest.
    is_known = isinstance(error, RuntimeError) and str(error) in (NO_THREAD, STILL_EXPIRED)
    return Fault.ENVIRONMENT if is_known else Fault.UNKNOWN


def can_pass(error: BaseException) -> bool:
    """Whether the same request can succeed later, with the same permissions and resources. Pure.

    Load, a conflict, the network and credentials pass: another invocation may even have credentials of its own. A
    missing permission or table is a fault of the environment as well, but it stays until a person acts.
    """
    if judge(error) != Fault.ENVIRONMENT:
        return False
    if not isinstance(error, ClientError) or error_code(error) in LOAD_CODES | CREDENTIAL_CODES:
        return True
    if (error.operation_name, error_code(error)) == HEAD_REFUSED:
        return False
    return error_code(error) not in RESOURCE_CODES and not is_denial(error)


def refused_key(error: ClientError) -> str | None:
    """ARN of the KMS key that the caller may not use; None if the answer refuses something else, or names no key."""
    refused = REFUSED_RESOURCE.search(_message(error))
    named = KEY_ARN.fullmatch(refused.group(2)) if refused is not None and refused.group(1) == "kms" else None
    return None if named is None else named.group()


def is_denial(error: BaseException) -> bool:
    """Whether a permission is missing or a key cannot be used: the request is refused until a person acts. Pure."""
    if not isinstance(error, ClientError) or error_code(error) in CREDENTIAL_CODES:
        return False
    return error_code(error) in RIGHTS_CODES | KEY_CODES or http_status(error) == FORBIDDEN


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def http_status(error: ClientError) -> int:
    """0 if the answer has none."""
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
    # A status for a code: botocore has found none. A proxy sends no id; S3, whose answer about a key with control
    # characters cannot be parsed, does.
    of_proxy = code.isdecimal() and not error.response.get("ResponseMetadata", {}).get("RequestId")
    refused = of_proxy or code in ENVIRONMENT_CODES or (error.operation_name, code) == HEAD_REFUSED
    if refused or status in (FORBIDDEN, TOO_MANY_REQUESTS) or status >= SERVER_ERROR:
        return Fault.ENVIRONMENT
    return Fault.UNKNOWN
