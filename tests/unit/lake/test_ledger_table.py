"""The requests of the ledger's table: consistent reads, bounded queries, every page; its refusals and repetitions."""

from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.faults import can_pass
from lake.ledger.table import MAX_TRIES, Key, LedgerTable

KEY = Key("manifest#m", "manifest")


class FakeClient:
    """Returns the answers in order, raises those that are errors, and records the requests."""

    def __init__(self, *answers: dict[str, Any] | ClientError) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> dict[str, Any]:
            self.requests.append({"operation": operation, **request})
            answer = self.answers.pop(0)
            if isinstance(answer, ClientError):
                raise answer
            return answer

        return call


def table_over(client: FakeClient) -> LedgerTable:
    fake: Any = client
    return LedgerTable(fake, "ledger")


def test_an_item_is_read_consistently_with_plain_values() -> None:
    item = {"n": Decimal(3), "ratio": Decimal("0.25"), "list": [Decimal(1)], "map": {"n": Decimal(2)}, "text": "a"}
    client = FakeClient({"Item": item})
    found = table_over(client).get(KEY)
    assert found == {"n": 3, "ratio": 0.25, "list": [1], "map": {"n": 2}, "text": "a"}
    plain = (found["n"], found["ratio"], *found["list"], found["map"]["n"])
    assert [type(value) for value in plain] == [int, float, int, int]
    assert client.requests == [
        {"operation": "get_item", "TableName": "ledger", "Key": KEY.item(), "ConsistentRead": True}
    ]


@pytest.mark.parametrize(
    "key", [Key("execution", ""), Key("execution", "a" * 1025), Key("dataset#" + "a" * 2041, "columns")]
)
def test_no_item_has_a_key_that_dynamodb_refuses(key: Key) -> None:
    # Given a person's input as a name, When it is looked up, Then no request is sent
    assert table_over(FakeClient()).get(key) is None


def test_a_query_reads_each_page_only_on_request() -> None:
    last = {"pk": "dataset", "sk": "a"}
    client = FakeClient({"Items": [{"n": 1}], "LastEvaluatedKey": last}, {"Items": [{"n": 2}]})
    items = table_over(client).query("dataset")
    assert next(items) == {"n": 1}
    assert len(client.requests) == 1
    assert list(items) == [{"n": 2}]
    assert client.requests[1]["ExclusiveStartKey"] == last


def error(code: str, *reasons: str) -> ClientError:
    response: Any = {"Error": {"Code": code}, "CancellationReasons": [{"Code": reason} for reason in reasons]}
    return ClientError(response, "operation")


def put(table: LedgerTable) -> bool:
    return table.put(KEY, {})


def update(table: LedgerTable) -> bool:
    return table.update(KEY, assign={"a": 1})


def transact(table: LedgerTable) -> bool:
    return table.transact([{}])


FAILED_CONDITION = error("ConditionalCheckFailedException")
CONFLICT = error("TransactionConflictException")
CANCELLED = "TransactionCanceledException"


@pytest.mark.parametrize(
    ("write", "answer", "refused"),
    [
        (put, FAILED_CONDITION, True),
        (update, FAILED_CONDITION, True),
        (put, error("AccessDeniedException"), False),
        (update, error("ProvisionedThroughputExceededException"), False),
        (transact, error(CANCELLED, "ConditionalCheckFailed"), True),
        (transact, error(CANCELLED, "None", "ConditionalCheckFailed"), True),
        (transact, error(CANCELLED, "ConditionalCheckFailed", "ValidationError"), False),
        (transact, error(CANCELLED, "ValidationError"), False),
        (transact, error("AccessDeniedException"), False),
    ],
)
def test_only_a_condition_that_does_not_hold_refuses_a_write(
    write: Callable[[LedgerTable], bool], answer: ClientError, refused: bool
) -> None:
    with nullcontext() if refused else pytest.raises(ClientError):
        assert not write(table_over(FakeClient(answer)))


def waiting_table(client: Any, waits: list[float]) -> LedgerTable:
    return LedgerTable(client, "ledger", waits.append)


@pytest.mark.parametrize(
    ("write", "conflict"),
    [(put, CONFLICT), (update, CONFLICT), (transact, error(CANCELLED, "None", "TransactionConflict"))],
)
def test_a_conflict_is_repeated_after_a_wait(write: Callable[[LedgerTable], bool], conflict: ClientError) -> None:
    client = FakeClient(conflict, conflict, {})
    waits: list[float] = []
    assert write(waiting_table(client, waits))
    assert len({request["operation"] for request in client.requests}) == 1
    assert (len(client.requests), len(waits)) == (3, 2)


def test_a_conflict_next_to_a_failed_condition_is_decided_by_the_next_try() -> None:
    client = FakeClient(
        error(CANCELLED, "TransactionConflict", "ConditionalCheckFailed"), error(CANCELLED, "ConditionalCheckFailed")
    )
    assert not transact(waiting_table(client, []))


def test_conflicts_are_repeated_a_bounded_number_of_times() -> None:
    client = FakeClient(*[CONFLICT] * 100)
    waits: list[float] = []
    with pytest.raises(ClientError, match="TransactionConflictException"):
        put(waiting_table(client, waits))
    assert len(client.requests) == MAX_TRIES
    assert sum(waits) < 6


KEYS = [Key(f"manifest#{number}", "manifest") for number in range(5)]


class SparingClient:
    """Processes a given number of keys in each request."""

    def __init__(self, *processed: int, exist: bool = True) -> None:
        self.processed = list(processed)
        self.exist = exist
        self.requests: list[int] = []

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        keys = RequestItems["ledger"]["Keys"]
        assert RequestItems["ledger"]["ConsistentRead"]
        self.requests.append(len(keys))
        count = self.processed.pop(0) if self.processed else 0
        rest = {"ledger": {"Keys": keys[count:], "ConsistentRead": True}} if keys[count:] else {}
        found = list(reversed(keys[:count])) if self.exist else []
        return {"Responses": {"ledger": found}, "UnprocessedKeys": rest}


def test_what_was_not_processed_is_read_again_after_a_wait_and_rows_keep_the_order_of_their_keys() -> None:
    waits: list[float] = []
    client = SparingClient(2, 0, 1, 2)
    found = waiting_table(client, waits).get_many(KEYS)
    assert [item and item["pk"] for item in found] == [key.pk for key in KEYS]
    assert client.requests == [5, 3, 3, 2]
    assert len(waits) == 3


def test_rows_that_do_not_exist_are_read_however_few_a_request_processes() -> None:
    client = SparingClient(*[0, 1] * len(KEYS), exist=False)
    assert waiting_table(client, []).get_many(KEYS) == [None] * len(KEYS)
    assert len(client.requests) > MAX_TRIES


def test_a_table_that_processes_nothing_is_not_called_endlessly() -> None:
    client = SparingClient()
    with pytest.raises(ClientError, match="none of 5 rows of table ledger") as caught:
        waiting_table(client, []).get_many(KEYS)
    assert len(client.requests) == MAX_TRIES
    # Load, as DynamoDB's own answer to such a request
    assert can_pass(caught.value)
