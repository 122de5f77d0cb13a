"""The requests of the ledger's table: consistent reads, bounded queries, every page, plain numbers."""

from decimal import Decimal
from typing import Any

import pytest

from lake.ledger.table import Key, LedgerTable

KEY = Key("manifest#m", "manifest")


class FakeClient:
    """Returns the answers one after the other, and keeps the requests."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> dict[str, Any]:
            self.requests.append({"operation": operation, **request})
            return self.answers.pop(0)

        return call


def table_over(client: FakeClient) -> LedgerTable:
    fake: Any = client
    return LedgerTable(fake, "ledger")


def test_an_item_is_read_consistently_with_plain_values() -> None:
    item = {"n": Decimal(3), "ratio": Decimal("0.25"), "list": [Decimal(1)], "map": {"n": Decimal(2)}, "text": "a"}
    client = FakeClient({"Item": item})
    found = table_over(client).get(KEY)
    assert found == {"n": 3, "ratio": 0.25, "list": [1], "map": {"n": 2}, "text": "a"}
    assert [type(found[name]) for name in ("n", "ratio")] == [int, float]
    assert client.requests == [
        {"operation": "get_item", "TableName": "ledger", "Key": KEY.item(), "ConsistentRead": True}
    ]


def test_there_is_no_item() -> None:
    assert table_over(FakeClient({})).get(KEY) is None


BASE = {"operation": "query", "TableName": "ledger"}


@pytest.mark.parametrize(
    ("options", "request_"),
    [
        (
            {},
            {
                "KeyConditionExpression": "#p = :p",
                "ExpressionAttributeNames": {"#p": "pk"},
                "ExpressionAttributeValues": {":p": "dataset"},
                "ConsistentRead": True,
            },
        ),
        (
            {"after": "a", "before": "b"},
            {
                "KeyConditionExpression": "#p = :p AND #s BETWEEN :a AND :b",
                "ExpressionAttributeNames": {"#p": "pk", "#s": "sk"},
                "ExpressionAttributeValues": {":p": "dataset", ":a": "a", ":b": "b"},
                "ConsistentRead": True,
            },
        ),
        (
            {"after": "a", "before": "b", "index": True},
            {
                "KeyConditionExpression": "#p = :p AND #s BETWEEN :a AND :b",
                "ExpressionAttributeNames": {"#p": "open", "#s": "open_order"},
                "ExpressionAttributeValues": {":p": "dataset", ":a": "a", ":b": "b"},
                "IndexName": "open",
            },
        ),
    ],
)
def test_a_query_is_bounded_and_consistent_unless_it_reads_the_index(
    options: dict[str, Any], request_: dict[str, Any]
) -> None:
    client = FakeClient({"Items": [{"n": Decimal(1)}]})
    assert list(table_over(client).query("dataset", **options)) == [{"n": 1}]
    assert client.requests == [{**BASE, **request_}]


def test_a_query_reads_every_page_only_when_it_is_asked_for() -> None:
    last = {"pk": "dataset", "sk": "a"}
    client = FakeClient({"Items": [{"n": 1}], "LastEvaluatedKey": last}, {"Items": [{"n": 2}]})
    items = table_over(client).query("dataset")
    assert next(items) == {"n": 1}
    assert len(client.requests) == 1
    assert list(items) == [{"n": 2}]
    assert client.requests[1]["ExclusiveStartKey"] == last
