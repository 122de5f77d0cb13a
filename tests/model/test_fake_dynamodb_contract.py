"""The fake of DynamoDB responds like the emulator: one script of calls on both, the same responses and errors."""

from __future__ import annotations

import secrets
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import boto3

from lake.ledger import State
from lake.ledger.manifest_row import open_key
from lake.ledger.table import Condition, Key, LedgerTable, RefusedError, put_request, update_request
from tests.ledger_table import create_ledger_table
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.service_errors import response_or_code
from tests.model.world import PARTITION
from tests.unit.lake.world import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.cloud import LocalCloud


def dynamodb_answers(client: Any) -> list[Any]:
    """Conditions of every kind the ledger uses, met and not met; then the current row."""
    table = LedgerTable(client, RESOURCES.ledger_table)
    key = Key(f"manifest#{secrets.token_hex(4)}", "manifest")
    answers: list[Any] = []

    def put(*where: Condition, **attributes: Any) -> None:
        answers.append(_refused(lambda: table.put(key, attributes, where)))

    def update(*where: Condition, remove: tuple[str, ...] = (), add: Any = None, **assign: Any) -> None:
        answers.append(_refused(lambda: table.update(key, assign=assign, add=add, remove=remove, conditions=where)))
        current = table.get(key)
        answers.append(current and {name: value for name, value in current.items() if name != "pk"})

    update(Condition("state", "=", State.QUEUED), state=State.RUNNING)
    put(Condition("pk", "missing"), state=State.QUEUED, attempt=0, lease_until=0, open="batch#QUEUED", open_order="1")
    put(Condition("pk", "missing"), state=State.ABANDONED)
    update(
        Condition("state", "=", State.QUEUED),
        Condition("attempt", "=", 0),
        state=State.RUNNING,
        attempt=1,
        lease_until=50,
    )
    update(Condition("lease_until", ">", 50), lease_until=60)
    update(Condition("lease_until", ">", 49), Condition("state", "=", "RUNNING"), lease_until=60)
    update(Condition("owner", "missing"), owner="run")
    update(Condition("owner", "=", "run"), add={"bytes": 5, "names": {"a"}})
    update(Condition("missing", ">", 1), lease_until=0)
    update(Condition("state", ">", 1), lease_until=0)
    update(add={"bytes": 7, "names": {"a", "b"}}, into=["x", "y"])
    update(Condition("published", "missing"), remove=("open", "open_order", "nothing"), state=State.DONE)
    answers.append(_transaction(client, key, State.RUNNING))
    answers.append(_transaction(client, key, State.DONE))
    answers.append(len(list(table.query(key.pk))))
    answers.append([item["sk"] for item in table.query(key.pk, after="m", before="n")])
    return answers


def _transaction(client: Any, key: Key, state: State) -> Any:
    name = RESOURCES.ledger_table
    where = [Condition("state", "=", state)]
    actions = [
        {"Update": update_request(name, key, {"state": State.SUPERSEDED}, {}, ("owner",), where)},
        {
            "Put": put_request(
                name, Key(key.pk, f"successor-{state}"), {"state": State.QUEUED}, [Condition("pk", "missing")]
            )
        },
    ]
    return _refused(lambda: LedgerTable(client, name).transact(actions))


def _refused(write: Callable[[], Any]) -> str:
    try:
        write()
    except RefusedError:
        return "refused"
    return "done"


def test_dynamodb_refuses_an_item_that_is_too_large_like_the_emulator(cloud: LocalCloud) -> None:
    client = boto3.resource("dynamodb", endpoint_url=cloud.endpoint).meta.client
    _create_once(client)
    request = {"TableName": RESOURCES.ledger_table, "Item": {"pk": "large", "sk": "x", "text": "x" * (400 << 10)}}
    answers = [response_or_code(each.put_item, **request) for each in (FakeDynamoDB(), client)]
    assert answers == ["ValidationException"] * 2


def test_dynamodb_answers_like_the_emulator(cloud: LocalCloud) -> None:
    client = boto3.resource("dynamodb", endpoint_url=cloud.endpoint).meta.client
    _create_once(client)
    assert _plain(dynamodb_answers(FakeDynamoDB())) == _plain(dynamodb_answers(client))


def test_the_index_of_open_manifests_shows_the_same_rows_in_the_same_order(cloud: LocalCloud) -> None:
    client = boto3.resource("dynamodb", endpoint_url=cloud.endpoint).meta.client
    _create_once(client)
    lane: Any = f"lane-{secrets.token_hex(4)}"

    def answers(client: Any) -> list[Any]:
        for number in (3, 1, 2):
            row: dict[str, Any] = {
                "id": f"m{number}",
                "state": "QUEUED",
                "partition": str(PARTITION),
                "open": f"{lane}#QUEUED",
            }
            row |= {"open_order": f"{number}", "attempt": number}
            LedgerTable(client, RESOURCES.ledger_table).put(Key(f"manifest#{lane}{number}", "manifest"), row, [])
        LedgerTable(client, RESOURCES.ledger_table).update(
            Key(f"manifest#{lane}2", "manifest"), remove=("open", "open_order")
        )
        rows = LedgerTable(client, RESOURCES.ledger_table).query(open_key(lane, State.QUEUED), index=True)
        return [(row["id"], row["attempt"]) for row in rows]

    assert answers(FakeDynamoDB()) == answers(client) == [("m1", 1), ("m3", 3)]


def _create_once(client: Any) -> None:
    try:
        create_ledger_table(client, RESOURCES.ledger_table)
    except client.exceptions.ResourceInUseException:
        return


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    return int(value) if isinstance(value, Decimal) else value
