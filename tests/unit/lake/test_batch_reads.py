"""Many rows in one read: in the order they are asked for, and all of them, however few DynamoDB gives at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import TransientError
from lake.ledger.table import MAX_TRIES, Key, LedgerTable

if TYPE_CHECKING:
    from tests.unit.lake.world import World

KEYS = [Key(f"manifest#{number}", "manifest") for number in range(5)]


class SparingClient:
    """Processes a given number of keys in each request."""

    def __init__(self, *processed: int) -> None:
        self.processed = list(processed)
        self.requests: list[int] = []

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        keys = RequestItems["ledger"]["Keys"]
        assert RequestItems["ledger"]["ConsistentRead"]
        self.requests.append(len(keys))
        count = self.processed.pop(0) if self.processed else 0
        rest = {"ledger": {"Keys": keys[count:], "ConsistentRead": True}} if keys[count:] else {}
        return {"Responses": {"ledger": list(reversed(keys[:count]))}, "UnprocessedKeys": rest}


def table_over(client: SparingClient, waits: list[float]) -> LedgerTable:
    fake: Any = client
    return LedgerTable(fake, "ledger", waits.append)


def test_rows_come_in_the_order_of_their_keys_and_a_missing_one_is_none(world: World) -> None:
    # Given
    first, second = world.queued("a.json"), world.queued("b.json")
    # When, Then
    found = world.ledger.manifests.get_many([second.id, "ghost", first.id])
    assert found == [second, None, first]


def test_what_was_not_processed_is_read_again_after_a_wait() -> None:
    waits: list[float] = []
    client = SparingClient(2, 0, 1, 2)
    found = table_over(client, waits).get_many(KEYS)
    assert [item and item["pk"] for item in found] == [key.pk for key in KEYS]
    assert client.requests == [5, 3, 3, 2]
    assert len(waits) == 3


def test_a_table_that_processes_nothing_is_not_asked_for_ever() -> None:
    client = SparingClient()
    with pytest.raises(TransientError, match="none of 5 rows of table ledger"):
        table_over(client, []).get_many(KEYS)
    assert len(client.requests) == MAX_TRIES
