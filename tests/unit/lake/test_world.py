"""The emulated services of the unit tests under requests of several threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.lake.world import RESOURCES, World

THREADS, WRITES = 16, 100


@pytest.fixture
def _threads_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_threads_change_often")
def test_writes_of_several_threads_are_all_kept(world: World) -> None:
    table = {"TableName": RESOURCES.ledger_table}
    new = {**table, "ConditionExpression": "attribute_not_exists(pk)"}

    def write(number: int) -> None:
        name = {"sk": str(number), "open_order": str(number)}
        items = [{"pk": f"a{number % 7}", "open": "x", **name}, {"pk": f"b{number}", **name}]
        world.dynamodb.transact_write_items(TransactItems=[{"Put": {**new, "Item": item}} for item in items])
        world.raw_s3.put_object(Bucket="input", Key=str(number), Body=b"")
        of_index = {"IndexName": "open", "KeyConditionExpression": "#open = :x"}
        values = {"ExpressionAttributeNames": {"#open": "open"}, "ExpressionAttributeValues": {":x": "x"}}
        world.dynamodb.query(**table, **of_index, **values)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, range(WRITES)))
    assert world.dynamodb.scan(**table, Select="COUNT")["Count"] == 2 * WRITES
    assert len(world.keys("input")) == WRITES
