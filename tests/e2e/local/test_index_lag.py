"""An index of the local cloud's DynamoDB is behind its table, as on AWS."""

from __future__ import annotations

import time
import uuid
from functools import partial

import pytest

from local.limits import Limits
from tests.e2e.waiting import wait_for

LAG_SECONDS = 0.3


class OpenItems:
    """A table with an index of the items that have the attribute ``open``."""

    def __init__(self, client) -> None:
        self.client = client
        self.name = f"lag-{uuid.uuid4().hex}"
        names = ("pk", "open")
        client.create_table(
            TableName=self.name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            BillingMode="PAY_PER_REQUEST",
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "open",
                    "KeySchema": [{"AttributeName": "open", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        )

    def put(self, key: str) -> None:
        self.client.put_item(TableName=self.name, Item={"pk": {"S": key}, "open": {"S": "yes"}})

    def close(self, key: str) -> None:
        update = {"UpdateExpression": "REMOVE #o", "ExpressionAttributeNames": {"#o": "open"}}
        self.client.update_item(TableName=self.name, Key={"pk": {"S": key}}, **update)

    def in_index(self) -> list[str]:
        condition = {"KeyConditionExpression": "#o = :o", "ExpressionAttributeNames": {"#o": "open"}}
        values = {":o": {"S": "yes"}}
        answer = self.client.query(TableName=self.name, IndexName="open", ExpressionAttributeValues=values, **condition)
        return [item["pk"]["S"] for item in answer["Items"]]

    def in_table(self) -> list[str]:
        return [item["pk"]["S"] for item in self.client.scan(TableName=self.name)["Items"] if "open" in item]


def index_shows(items: OpenItems, expected: list[str]) -> bool:
    return items.in_index() == expected


@pytest.fixture
def items(probe):
    yield OpenItems(probe.client("dynamodb"))
    probe.cloud.limit(Limits())


def test_the_index_shows_every_kind_of_write_later_than_the_table(probe, items):
    probe.cloud.limit(Limits(index_lag_seconds=LAG_SECONDS))
    for write, before, after in (
        (lambda: items.put("a"), [], ["a"]),
        (lambda: items.close("a"), ["a"], []),
        (lambda: items.put("a"), [], ["a"]),
        (lambda: items.client.delete_item(TableName=items.name, Key={"pk": {"S": "a"}}), ["a"], []),
    ):
        # When something is written, then a read of the table shows it
        assert items.in_index() == before
        begun = time.monotonic()
        write()
        assert items.in_table() == after
        # And the index shows it when its time has come, and not before
        wait_for("the index", partial(index_shows, items, after))
        assert time.monotonic() - begun >= LAG_SECONDS


def test_without_a_lag_the_index_shows_the_table(probe, items):
    probe.cloud.limit(Limits(index_lag_seconds=3600))
    items.put("a")
    assert items.in_index() == []
    probe.cloud.limit(Limits(index_lag_seconds=0))
    assert items.in_index() == ["a"]
