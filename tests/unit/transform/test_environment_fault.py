"""What a person reads about a fault of the environment, and which errors are none."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError

from lake.errors import AuditError, InvalidDocumentError, TransientError
from router.settle.verdict import PERMISSION
from transform.give_up import fault_of
from transform.source import UnreadableFileError


def answer(code: str, operation: str, status: int = 400, message: str = "no") -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (answer("AccessDenied", "GetObject", 403), "s3:GetObject"),
        (answer("403", "HeadObject", 403), "s3:GetObject"),
        (answer("AccessDenied", "CreateMultipartUpload", 403), "s3:PutObject"),
        (answer("AccessDeniedException", "UpdateItem"), "dynamodb:UpdateItem"),
        (
            answer(
                "AccessDenied", "GetObject", 403, "User: u is not authorized to perform: kms:Decrypt on resource: k"
            ),
            "kms:Decrypt",
        ),
    ],
)
def test_a_missing_permission_is_named(error: ClientError, action: str) -> None:
    fault = fault_of(error, "s3://bucket")
    assert fault is not None
    assert not fault.passing
    found = PERMISSION.search(str(fault))
    assert found is not None
    assert found.group() == action
    assert "s3://bucket" in fault.cause


@pytest.mark.parametrize(
    ("error", "cause", "passing"),
    [
        (answer("SlowDown", "PutObject", 503), "s3:PutObject did not succeed now", True),
        (ConnectTimeoutError(endpoint_url="https://s3"), "AWS could not be reached", True),
        (NoCredentialsError(), "there are no valid credentials", False),
        (answer("ExpiredToken", "GetObject"), "s3:GetObject (where the bucket has versions", False),
        (answer("NoSuchBucket", "UploadPart", 404), "a bucket or table is missing", False),
        (answer("KMS.DisabledException", "UploadPart"), "s3:PutObject is refused because of the KMS key", False),
        (OSError(errno.ENOSPC, "no space left on device"), "the disk of a worker is full", False),
    ],
)
def test_the_cause_says_what_happened(error: Exception, cause: str, passing: bool) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert fault.cause.startswith(cause)
    assert fault.passing == passing


def test_the_fault_is_found_behind_an_error_of_the_product() -> None:
    error = TransientError("s3://lake/k could not be uploaded")
    error.__cause__ = answer("AccessDenied", "UploadPart", 403)
    fault = fault_of(error)
    assert fault is not None
    assert fault.cause == "s3:PutObject is denied: s3://lake/k could not be uploaded"


@pytest.mark.parametrize("kind", [UnreadableFileError, InvalidDocumentError])
def test_what_belongs_to_a_file_or_a_document_is_no_fault_of_the_environment(kind: type[Exception]) -> None:
    error = kind("its encryption key cannot be used")
    error.__cause__ = answer("KMS.DisabledException", "GetObject")
    assert fault_of(error) is None


@pytest.mark.parametrize(
    "error", [AuditError("rows"), ValueError("AccessDenied"), answer("ValidationException", "Query")]
)
def test_any_other_error_counts(error: Exception) -> None:
    assert fault_of(error) is None
