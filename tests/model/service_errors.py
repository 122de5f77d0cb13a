"""Errors that the services answer with although nothing is wrong with the request: load, rights, a conflict."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from tests.model.fake_dynamodb import TransactionCanceledException

S3_ERRORS = (
    ("SlowDown", 503),
    ("InternalError", 500),
    ("AccessDenied", 403),
    ("ServiceUnavailable", 503),
    ("RequestTimeout", 400),
    ("ExpiredToken", 400),
)
"""Amazon S3 API Reference, "Error responses"."""
DYNAMODB_ERRORS = (
    ("ProvisionedThroughputExceededException", 400),
    ("InternalServerError", 500),
    ("AccessDeniedException", 400),
    ("ThrottlingException", 400),
    ("RequestLimitExceeded", 400),
)
"""Amazon DynamoDB Developer Guide, "Error handling"."""
GLUE_ERRORS = (("OperationTimeoutException", 400), ("InternalServiceException", 500), ("ThrottlingException", 400))
"""AWS Glue Web API Reference, "Exceptions"."""
CONFLICT = ("TransactionConflictException", 400)
"""A write while a transaction is under way for the same item."""
ITEM_WRITES = frozenset({"put_item", "update_item"})
ITEM_READS = frozenset({"get_item", "batch_get_item", "query"})
TRANSACTION = "transact_write_items"
JOB_RUN_OPERATIONS = frozenset({"get_job_run", "get_job_runs", "start_job_run", "batch_stop_job_run"})


def service_error(operation: str, number: int) -> ClientError:
    """The error of a request; ``number`` chooses among those that its operation can be answered with."""
    errors = _errors(operation)
    code, status = errors[number % len(errors)]
    response: Any = {"Error": {"Code": code, "Message": "model"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    if code == "TransactionCanceledException":
        response["CancellationReasons"] = [{"Code": "TransactionConflict"}]
        return TransactionCanceledException(response, operation)
    return ClientError(response, operation)


def _errors(operation: str) -> tuple[tuple[str, int], ...]:
    if operation == TRANSACTION:
        return (("TransactionCanceledException", 400), ("TransactionInProgressException", 400), *DYNAMODB_ERRORS)
    if operation in ITEM_WRITES:
        return (CONFLICT, *DYNAMODB_ERRORS)
    if operation in ITEM_READS:
        return DYNAMODB_ERRORS
    return GLUE_ERRORS if operation in JOB_RUN_OPERATIONS else S3_ERRORS
