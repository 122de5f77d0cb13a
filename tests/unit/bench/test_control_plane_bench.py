"""bench-plan: the stand-in has the limits of the services, and the functions of the control plane run on it."""

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from boto3.dynamodb.types import TypeSerializer

from bench.control_plane.__main__ import BEGIN_MARKER, END_MARKER, Measured, format_table
from bench.control_plane.measure import calls, connect
from bench.control_plane.night import NIGHTS, Night, night
from bench.control_plane.stand_in import PUBLISH, serve
from bench.control_plane.table import MAX_PAGE_BYTES, RefusedRequestError, Table
from lake.ledger import State
from lake.manifest import Lane
from lake.manifest_documents import decode_files, read_manifest
from lake.settings import parse_settings
from scripts.markdown_page import replace_between
from sizing.day import simulate_option
from sizing.options import ALL_BATCH, routing_options
from tests.unit.sizing import world

SMALL = Night("small", 60, 1000, 2, 3, 2, 10_000)


def wire(**attributes: Any) -> dict[str, Any]:
    return dict(TypeSerializer().serialize(attributes)["M"])


def key(number: int) -> dict[str, Any]:
    return wire(pk="p", sk=f"{number:05}")


@pytest.fixture
def table() -> Table:
    """300 items of 10 kB in one partition key; the first 30 are open."""
    table = Table()
    for number in range(300):
        more = {"open": "batch#QUEUED", "open_order": f"{number:05}"} if number < 30 else {}
        table.load(wire(pk="p", sk=f"{number:05}", state="QUEUED", number=number, text="x" * 10_000, **more))
    return table


def query(name: str, value: str, **more: Any) -> dict[str, Any]:
    names, values = {"#p": name}, {":p": {"S": value}}
    return {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values, **more}


def test_a_query_has_pages_of_at_most_a_megabyte(table: Table) -> None:
    found: list[str] = []
    request = query("pk", "p")
    while True:
        page = table.answer("Query", request)
        assert len(json.dumps(page["Items"])) < MAX_PAGE_BYTES * 1.1
        found += [item["sk"]["S"] for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            break
        request = query("pk", "p", ExclusiveStartKey=page["LastEvaluatedKey"])
    assert found == [f"{number:05}" for number in range(300)]


def test_a_batch_has_at_most_100_keys_and_may_leave_some_unprocessed(table: Table) -> None:
    with pytest.raises(RefusedRequestError, match="ValidationException"):
        table.answer("BatchGetItem", {"RequestItems": {"ledger": {"Keys": [key(n) for n in range(101)]}}})
    unprocessed = 0
    for _ in range(20):
        answer = table.answer("BatchGetItem", {"RequestItems": {"ledger": {"Keys": [key(n) for n in range(100)]}}})
        rest = answer["UnprocessedKeys"].get("ledger", {}).get("Keys", [])
        assert len(answer["Responses"]["ledger"]) + len(rest) == 100
        unprocessed += len(rest)
    assert unprocessed == 10


def test_a_transaction_is_refused_as_a_whole_and_a_row_leaves_the_index(table: Table) -> None:
    def close(number: int, state: str) -> dict[str, Any]:
        update = {
            "Key": key(number),
            "UpdateExpression": "SET #state = :v0 ADD #number :v1 REMOVE #open, #open_order",
            "ConditionExpression": "#state = :v2 AND attribute_not_exists(#gone)",
            "ExpressionAttributeNames": {
                f"#{name}": name for name in ("state", "number", "open", "open_order", "gone")
            },
            "ExpressionAttributeValues": wire(**{":v0": "DONE", ":v1": 5, ":v2": state}),
        }
        return {"Update": update}

    with pytest.raises(RefusedRequestError) as refused:
        table.answer("TransactWriteItems", {"TransactItems": [close(0, "QUEUED"), close(1, "RUNNING")]})
    reasons: Any = refused.value.fields["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    index = query("open", "batch#QUEUED")
    assert table.answer("Query", index)["Count"] == 30
    table.answer("TransactWriteItems", {"TransactItems": [close(0, "QUEUED"), close(1, "QUEUED")]})
    assert table.answer("Query", index)["Count"] == 28
    assert table.answer("GetItem", {"Key": key(1)})["Item"]["number"] == {"N": "6"}
    assert sum(table.index_writes.values()) == 2


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The small night behind HTTP, in a thread."""
    loop, ports, has_port = asyncio.new_event_loop(), list[int](), threading.Event()

    def take_port(port: int) -> None:
        ports.append(port)
        has_port.set()

    task = loop.create_task(serve(SMALL, take_port))
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.gather(task, return_exceptions=True)))
    thread.start()
    has_port.wait()
    yield f"http://127.0.0.1:{ports[0]}"
    loop.call_soon_threadsafe(task.cancel)
    thread.join()
    # The clients keep their connections open.
    connections = asyncio.all_tasks(loop)
    for connection in connections:
        connection.cancel()
    loop.run_until_complete(asyncio.gather(*connections, return_exceptions=True))
    loop.close()


def test_the_functions_run_on_a_night(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "bench")
    services = connect(endpoint)
    functions = calls(SMALL, services)
    assert sum(1 for _ in services.ledger.manifests.open(Lane.BATCH, State.QUEUED)) == SMALL.divided
    # When, Then: the ten parts of the last hour become a manifest for each dataset, as the hour before has
    assert functions["divide"]() == {"manifests": 2}
    planned = functions["plan"]()
    assert (planned["manifests"], planned["files"]) == (SMALL.manifests, 60) == (4, 60)
    for row in services.ledger.manifests.open(Lane.BATCH, State.QUEUED):
        assert len(read_manifest(services.s3, "control", row, ("input",)).files) == row.files
    assert functions["run_status"]() == {"open": 4, "terminal": 0, "held": 0, "denied": 0}
    assert functions["catalog"]()["created"] == len(SMALL.dataset_names())
    found = functions["backfill"]()
    assert found["found"] == found["known"] > 0
    assert functions["sweep"]()["adopted"] == 0
    # When the manifests of the last hour are DONE, then this hour of both datasets is complete
    urlopen(endpoint + PUBLISH).close()
    assert functions["hours"]() == {"completed": 2}


def test_every_file_is_in_one_manifest_of_its_hour_or_in_one_part_of_the_last_one() -> None:
    night = Night("small", 60, 1000, 3, 3, 2, 4)
    manifests = [night.manifest(number) for number in range(night.divided)]
    assert [len(manifest.files) for manifest in manifests] == [4, 4, 2] * 4
    assert [manifest.partition.hour for manifest in manifests] == [0] * 6 + [1] * 6
    parts = [night.part(number) for number in range(night.parts)]
    assert [part.files for part, _ in parts] == [3] * 6 + [2]
    listed = [
        file
        for _, body in parts
        for text in json.loads(body)["files"].values()
        for file in itertools.chain(*decode_files([text]))
    ]
    assert len({file for manifest in manifests for file in manifest.files} | {*listed}) == 60
    assert [night.number_of(manifest.id) for manifest in manifests] == list(range(12))


@pytest.mark.parametrize("datasets", [10, 10_000])
def test_simulate_says_the_same_dollars(datasets: int) -> None:
    # Given two hours in which each invocation has six files
    load = night("B", 43_200, 3_500_000, 2, datasets)
    sizes = [{"bytes": load.file_bytes}]
    profile = world.profile(files=load.files, datasets=datasets, sizes=sizes, curve=[1.0] * 2 + [0.0] * 22)
    settings = parse_settings({"stage": "t"})
    (all_batch,) = (option for option in routing_options(settings, 1.0) if option.name == ALL_BATCH)
    option = simulate_option(world.arrivals(profile, settings), all_batch)
    assert option.dollars.other / load.files * 1e6 == pytest.approx(load.other_dollars, rel=0.03)


def test_the_table_says_which_limit_is_exceeded_and_has_its_place_in_the_page() -> None:
    fast = Measured("A10", "plan", 20.0, 5.0, 100 << 20, {"Query": 3}, 0, {})
    slow = Measured("A10", "plan", 61.0, 5.0, 100 << 20, {"Query": 3}, 0, {})
    busy = Measured("A10", "divide", 61.0, 9.0, 100 << 20, {"Query": 3}, 0, {})
    text = format_table([fast, slow, busy], 1.0)
    assert [line.rsplit("| ", 1)[1] for line in text.splitlines()[4:7]] == ["met |", "NOT met |", "met |"]
    assert set(NIGHTS) == {"A10", "B10", "B100", "B1000", "B10000"}
    page = f"before\n{BEGIN_MARKER}\nold\n{END_MARKER}\nafter"
    assert replace_between(page, text, BEGIN_MARKER, END_MARKER).count(text) == 1
