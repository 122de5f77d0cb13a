"""A write that met a transaction on the same item is repeated, whichever operation it was, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.ledger.table import MAX_TRIES, Condition, Key, LedgerTable, RefusedError, put_request

KEY = Key("manifest#m", "manifest")


def conflict(operation: str) -> ClientError:
    answer: Any = {"Error": {"Code": "TransactionConflictException", "Message": ""}}
    return ClientError(answer, operation)


def cancelled(*reasons: str) -> ClientError:
    code = {"Code": "TransactionCanceledException", "Message": ""}
    answer: Any = {"Error": code, "CancellationReasons": [{"Code": reason} for reason in reasons]}
    return ClientError(answer, "TransactWriteItems")


class FakeClient:
    """Raises the errors one after the other, then succeeds."""

    def __init__(self, *errors: ClientError) -> None:
        self.errors = list(errors)
        self.calls: list[str] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**_: Any) -> dict[str, Any]:
            self.calls.append(operation)
            if self.errors:
                raise self.errors.pop(0)
            return {}

        return call


def table_over(client: FakeClient, waits: list[float]) -> LedgerTable:
    fake: Any = client
    return LedgerTable(fake, "ledger", waits.append)


def write(table: LedgerTable, operation: str) -> None:
    if operation == "put_item":
        table.put(KEY, {"state": "QUEUED"}, [Condition("pk", "missing")])
    elif operation == "update_item":
        table.update(KEY, assign={"state": "QUEUED"})
    else:
        table.transact([{"Put": put_request("ledger", KEY, {}, [])}])


@pytest.mark.parametrize("operation", ["put_item", "update_item", "transact_write_items"])
def test_a_conflict_is_repeated_after_a_wait(operation: str) -> None:
    error = cancelled("None", "TransactionConflict") if operation.startswith("transact") else conflict(operation)
    client = FakeClient(error, error)
    waits: list[float] = []
    write(table_over(client, waits), operation)
    assert client.calls == [operation] * 3
    assert len(waits) == 2


def test_a_conflict_beside_a_condition_that_failed_is_decided_by_the_next_try() -> None:
    client = FakeClient(cancelled("TransactionConflict", "ConditionalCheckFailed"), cancelled("ConditionalCheckFailed"))
    with pytest.raises(RefusedError):
        write(table_over(client, []), "transact_write_items")


def test_conflicts_are_repeated_a_bounded_number_of_times() -> None:
    client = FakeClient(*[conflict("PutItem")] * 100)
    waits: list[float] = []
    with pytest.raises(ClientError, match="TransactionConflictException"):
        write(table_over(client, waits), "put_item")
    assert len(client.calls) == MAX_TRIES
    assert sum(waits) < 6


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ValidationException"])
def test_what_is_no_conflict_is_left_to_the_client(code: str) -> None:
    answer: Any = {"Error": {"Code": code, "Message": ""}}
    client = FakeClient(ClientError(answer, "PutItem"))
    with pytest.raises(ClientError, match=code):
        write(table_over(client, []), "put_item")
    assert len(client.calls) == 1


@pytest.mark.parametrize("reasons", [("ValidationError",), ("TransactionConflict", "ItemCollectionSizeLimitExceeded")])
def test_a_transaction_that_can_never_succeed_is_not_repeated(reasons: tuple[str, ...]) -> None:
    client = FakeClient(cancelled(*reasons))
    with pytest.raises(ClientError, match="TransactionCanceledException"):
        write(table_over(client, []), "transact_write_items")
    assert len(client.calls) == 1
