"""Arrival rows: what is written is read, one owner at a time, and nothing of the owner before is left."""

from dataclasses import replace
from typing import Any

import pytest

from lake.ledger import ArrivalRow
from lake.ledger.arrivals import EXPIRY, IGNORED_FILES, REMEMBERED, arrival_key
from lake.ledger.table import RefusedError
from lake.manifest import Lane
from lake.time import iso_utc
from tests.unit.lake.world import PARTITION, World, file_of

FILE = file_of("orders/a.json")
OWNED = ArrivalRow(FILE, "manifest-1", PARTITION, Lane.STREAM, "urgent", "2026-11-20T09:30:00Z")
IGNORED = ArrivalRow(FILE, None, None, None, "no rule", "2026-11-20T09:30:00Z")
ROWS = {
    "owned": OWNED,
    "owned, expires": replace(OWNED, expires_at=7),
    "without a version": replace(OWNED, file=file_of("orders/a.json", version=None)),
    "ignored": IGNORED,
    "ignored, expires": replace(IGNORED, expires_at=7),
}


def state_and_expiry(world: World) -> tuple[Any, Any]:
    key = arrival_key(FILE.bucket, FILE.key, FILE.version)
    item = world.dynamodb.get_item(TableName="ledger", Key=key.item(), ConsistentRead=True)["Item"]
    assert None not in item.values()
    return item.get("state"), item.get(EXPIRY)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_read_as_it_was_written(world: World, row: ArrivalRow) -> None:
    arrivals = world.ledger.arrivals
    assert arrivals.put(row) == row
    assert arrivals.get(row.file) == row
    assert arrivals.get_many([file_of("orders/unknown.json"), row.file]) == [None, row]
    assert arrivals.versions(row.file.bucket, row.file.key) == [row]


@pytest.mark.parametrize("first", [OWNED, IGNORED])
def test_the_first_row_of_an_arrival_stays(world: World, first: ArrivalRow) -> None:
    world.ledger.arrivals.put(first)
    assert world.ledger.arrivals.put(replace(OWNED, manifest="manifest-2", reason="later")) == first
    assert world.ledger.arrivals.get(FILE) == first


@pytest.mark.parametrize("expires_at", [None, 9])
@pytest.mark.parametrize("before", [OWNED, IGNORED, replace(OWNED, expires_at=7)])
def test_an_adopted_arrival_has_everything_of_its_new_owner(
    world: World, before: ArrivalRow, expires_at: int | None
) -> None:
    world.ledger.arrivals.put(before)
    adopted = ArrivalRow(
        replace(FILE, arrived_at="2026-11-21T00:00:00Z"),
        "manifest-2",
        replace(PARTITION, hour=10),
        Lane.BATCH,
        "adopted",
        "2026-11-21T00:00:01Z",
        expires_at,
    )
    assert world.ledger.arrivals.adopt(before, adopted) == adopted
    assert world.ledger.arrivals.get(FILE) == adopted
    assert state_and_expiry(world) == (None, expires_at)


@pytest.mark.parametrize("read", [OWNED, IGNORED])
def test_an_arrival_that_has_got_another_owner_since_is_not_adopted(world: World, read: ArrivalRow) -> None:
    # Given an arrival that another process has adopted after it was read
    world.ledger.arrivals.put(read)
    others = replace(OWNED, manifest="manifest-2")
    world.ledger.arrivals.adopt(read, others)
    # When, Then
    assert world.ledger.arrivals.adopt(read, replace(OWNED, manifest="manifest-3")) == others
    assert world.ledger.arrivals.get(FILE) == others


def test_a_row_that_was_deleted_manually_cannot_be_adopted(world: World) -> None:
    with pytest.raises(RefusedError):
        world.ledger.arrivals.adopt(OWNED, replace(OWNED, manifest="manifest-2"))
    assert world.ledger.arrivals.get(FILE) is None


@pytest.mark.parametrize("deleted_before", [1, 2])
def test_a_reason_whose_row_expires_while_a_file_is_counted_begins_anew(world: World, deleted_before: int) -> None:
    # Given a reason of a month ago, whose row DynamoDB deletes before the first write, or the second if there is one
    ignored = world.ledger.ignored
    ignored.add("no rule", [FILE], world.now)
    world.wait(REMEMBERED)
    (item,) = world.dynamodb.query(
        TableName="ledger",
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": IGNORED_FILES},
    )["Items"]
    world.faults.reset()
    world.faults.pause = (
        deleted_before,
        lambda: world.dynamodb.delete_item(TableName="ledger", Key={name: item[name] for name in ("pk", "sk")}),
    )
    # When
    ignored.add("no rule", [FILE], world.now)
    # Then
    ((group,), _) = ignored.groups()
    assert group.since in (item["since"], iso_utc(world.now))
