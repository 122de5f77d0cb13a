"""Errors that are no fault of a manifest, as data: the cause, what a person does about it, and whether it passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from botocore.exceptions import ClientError

from lake.errors import TerminalError
from lake.faults import (
    CREDENTIAL_CODES,
    CREDENTIAL_ERRORS,
    FORBIDDEN,
    KEY_CODES,
    NETWORK_ERRORS,
    RESOURCE_CODES,
    RIGHTS_CODES,
    Fault,
    error_code,
    http_status,
    judge,
)

MAX_CAUSE_CHARACTERS = 700
"""The sentence is stored in the manifest's row."""
READ_ACTION = "s3:GetObject (where the bucket has versions: s3:GetObjectVersion)"
ACTIONS = {
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "GetItem": "dynamodb:GetItem",
    "GetJobRun": "glue:GetJobRun",
    "GetObject": READ_ACTION,
    "HeadObject": "s3:GetObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListObjectsV2": "s3:ListBucket",
    "PutItem": "dynamodb:PutItem",
    "PutObject": "s3:PutObject",
    "Query": "dynamodb:Query",
    "TransactWriteItems": "dynamodb:PutItem and dynamodb:UpdateItem",
    "UpdateItem": "dynamodb:UpdateItem",
    "UploadPart": "s3:PutObject",
}
"""IAM actions of the requests that the jobs make (Service Authorization Reference)."""
CHECK_CREDENTIALS = "check the role of the job and its session"
WAIT = "the next run tries it again: if it persists, look at the health of the service"
NAMED_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)")
"""Newer answers of AWS name the action themselves, that of the KMS key included."""


@dataclass(frozen=True, slots=True)
class EnvironmentFault:
    """Why something could not be done now, although the manifest is not at fault."""

    cause: str
    """What was refused or failed; names the permission if one is missing."""
    remedy: str
    """What a person does about it."""
    passing: bool
    """Load or network: it can be over in seconds, so the same run tries again."""
    denied: bool = False
    """A permission, a key or a resource: every run meets it until a person acts."""

    def __str__(self) -> str:
        """One sentence for the log and for the manifest's row."""
        return f"{self.cause}; {self.remedy}"


def fault_of(error: BaseException, subject: str = "") -> EnvironmentFault | None:
    """The fault behind an error, found in the error itself or in what it was raised from; None: none is proven.

    What is proven to belong to a file or a document (a ``TerminalError``) is not a fault of the environment.
    ``subject`` is what the request was about, if the error does not say so.
    """
    for cause in _causes(error):
        if isinstance(cause, TerminalError):
            return None
        # A key that was disabled belongs to a file only where a file with a key of its own is read, and there it is a
        # TerminalError.
        unusable_key = isinstance(cause, ClientError) and error_code(cause) in KEY_CODES
        if unusable_key or judge(cause) == Fault.ENVIRONMENT:
            text = f"{subject}: {error}" if subject else str(error)
            return _describe(cause, text[:MAX_CAUSE_CHARACTERS])
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__


def _describe(error: BaseException, text: str) -> EnvironmentFault:
    if isinstance(error, ClientError):
        return _describe_answer(error, text)
    if isinstance(error, CREDENTIAL_ERRORS):
        return EnvironmentFault(f"there are no valid credentials: {text}", CHECK_CREDENTIALS, passing=False)
    if isinstance(error, NETWORK_ERRORS):
        return EnvironmentFault(f"AWS could not be reached: {text}", WAIT, passing=True)
    if isinstance(error, PermissionError):
        remedy = "allow it to the user of the process"
        return EnvironmentFault(f"a file may not be used: {text}", remedy, passing=False, denied=True)
    remedy = "give the workers more disk, or lower convert.target_file_bytes"
    return EnvironmentFault(f"the disk of a worker is full: {text}", remedy, passing=False)


def _describe_answer(error: ClientError, text: str) -> EnvironmentFault:
    code, action, denied = error_code(error), _action(error), True
    if code in KEY_CODES:
        cause, remedy = f"{action} is refused because of the KMS key", "enable the key of the bucket again"
    elif code in CREDENTIAL_CODES:
        cause, remedy, denied = f"{action} is refused because of its credentials", CHECK_CREDENTIALS, False
    elif code in RESOURCE_CODES:
        cause, remedy = "a bucket or table is missing", "deploy the stack again"
    elif code in RIGHTS_CODES or http_status(error) == FORBIDDEN:
        cause = f"{action} is denied"
        remedy = "allow it in the policies of the jobs' role, of the bucket or table, and of its KMS key if it has one"
    else:
        return EnvironmentFault(f"{action} did not succeed now: {text}", WAIT, passing=True)
    return EnvironmentFault(f"{cause}: {text}", remedy, passing=False, denied=denied)


def _action(error: ClientError) -> str:
    named = NAMED_ACTION.search(str(error.response.get("Error", {}).get("Message", "")))
    return named.group(1) if named else ACTIONS.get(error.operation_name, error.operation_name)
