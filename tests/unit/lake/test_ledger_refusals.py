"""Which errors are the ledger's: one alarm tells of them, instead of one for each function that meets them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

import lake.ledger
from lake.errors import TransientError
from lake.ledger.refusals import OPERATIONS, is_refused_by_ledger
from lake.ledger.table import RefusedError

DENIED = "AccessDeniedException"
THROTTLED = "ProvisionedThroughputExceededException"


def answer(code: str, operation: str, *reasons: str) -> ClientError:
    response = {"Error": {"Code": code, "Message": "no"}, "CancellationReasons": [{"Code": name} for name in reasons]}
    return ClientError(response, operation)  # type: ignore[arg-type]


CASES = [
    (answer(DENIED, "GetItem"), True),
    (answer(THROTTLED, "UpdateItem"), True),
    (answer("ResourceNotFoundException", "Query"), True),
    (answer("TransactionCanceledException", "TransactWriteItems", "None", "ThrottlingError"), True),
    # The protocol at work
    (answer("ConditionalCheckFailedException", "PutItem"), False),
    (answer("TransactionConflictException", "UpdateItem"), False),
    (answer("TransactionCanceledException", "TransactWriteItems", "TransactionConflict"), False),
    (answer("TransactionCanceledException", "TransactWriteItems", "ConditionalCheckFailed"), False),
    (RefusedError(), False),
    # A fault of the code
    (answer("ValidationException", "Query"), False),
    (KeyError("pk"), False),
    # Other services
    (answer(DENIED, "GetObject"), False),
    (answer("ThrottlingException", "StartJobRun"), False),
    (ReadTimeoutError(endpoint_url="https://dynamodb"), False),
]


@pytest.mark.parametrize(("error", "refused"), CASES, ids=lambda case: repr(case)[:90])
def test_errors_of_the_ledger(error: Exception, refused: bool) -> None:
    assert is_refused_by_ledger(error) == refused


@pytest.mark.parametrize(("error", "refused"), CASES, ids=lambda case: repr(case)[:90])
def test_an_error_of_the_product_that_was_raised_from_it_is_judged_as_it(error: Exception, refused: bool) -> None:
    # Given an error of the product for another one, raised from it, or while it was handled
    explicit, implicit = TransientError("later"), TransientError("later")
    explicit.__cause__, implicit.__context__ = error, error
    # Then
    assert is_refused_by_ledger(explicit) == is_refused_by_ledger(implicit) == refused


def test_every_operation_of_the_ledger_is_known() -> None:
    calls = re.compile(r"\bclient\.([a-z_]+)\(|_client\.([a-z_]+)\(|_write\(\"([a-z_]+)\"")
    folder = Path(lake.ledger.__file__).parent
    found = {
        name for file in folder.glob("*.py") for names in calls.findall(file.read_text()) for name in names if name
    }
    assert {name.title().replace("_", "") for name in found} == OPERATIONS
