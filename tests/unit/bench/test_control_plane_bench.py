"""bench-plan: the substitute has the limits of the services, and the functions of the control plane run on it."""

import json
import math
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from bench.control_plane.__main__ import BEGIN_MARKER, END_MARKER, Measured, format_table
from bench.control_plane.measure import calls, connect
from bench.control_plane.night import NIGHTS, Night
from bench.control_plane.stand_in import StandIn
from bench.control_plane.table import MAX_PAGE_BYTES, Table
from lake.ledger import State
from lake.manifest import Lane
from lake.manifest_documents import read_manifest
from scripts.markdown_page import replace_between

SMALL = Night("small", 60, 1000, 2, 3, 2, 10_000)


def wire(**attributes: Any) -> dict[str, Any]:
    return dict(TypeSerializer().serialize(attributes)["M"])


@pytest.fixture
def table() -> Table:
    """300 items of 10 kB in one partition key."""
    table = Table()
    for number in range(300):
        table.load(wire(pk="p", sk=f"{number:05}", text="x" * 10_000))
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


@pytest.fixture(autouse=True)
def without_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "bench")
    monkeypatch.setattr("bench.control_plane.stand_in.READ_SECONDS", 0)
    monkeypatch.setattr("bench.control_plane.stand_in.WRITE_SECONDS", 0)


def test_the_functions_run_on_a_night() -> None:
    # Given
    with StandIn(SMALL) as stand_in:
        services = connect(stand_in.endpoint)
        functions = calls(SMALL, services)
        assert sum(1 for _ in services.ledger.manifests.open(Lane.BATCH, State.QUEUED)) == SMALL.divided
        # When, Then: the ten parts of the last hour become one manifest per dataset, as in the hour before
        assert len(functions["divide"]()) == 2
        planned = functions["plan"]()
        assert (planned["manifests"], planned["files"]) == (4, 60)
        for row in services.ledger.manifests.open(Lane.BATCH, State.QUEUED):
            assert len(read_manifest(services.s3, "control", row, ("input",)).files) == row.files
        assert functions["run_status"]() == {"open": 4, "terminal": 0, "held": 0, "denied": 0}
        assert functions["catalog"]()["created"] == len(SMALL.dataset_names())
        found = functions["backfill"]()
        assert found["found"] == found["known"] > 0
        assert functions["sweep"]()["adopted"] == 0
        # When the manifests of the last hour are DONE, then this hour of both datasets is complete
        stand_in.publish(SMALL.last_hour)
        assert functions["hours"]() == {"completed": 2}
        # And the night is settled when all are DONE
        stand_in.publish("")
        assert not list(services.ledger.manifests.open(Lane.BATCH, State.QUEUED))
        assert functions["settle"]()["done"] == 4


@pytest.mark.parametrize("datasets", [1, 10])
def test_settle_reads_a_hundred_rows_and_lists_a_thousand_objects_with_a_request(datasets: int) -> None:
    # Given a night of manifests with ten objects each
    night = Night("pages", 24 * 20 * datasets, 1_700_000_000, 24, 20 * datasets, datasets, 4)
    assert (night.divided, night.objects) == (115 * datasets, 10)
    # The last hour of a dataset becomes a manifest
    manifests = 116 * datasets
    with StandIn(night) as stand_in:
        functions = calls(night, connect(stand_in.endpoint))
        functions["divide"]()
        functions["plan"]()
        stand_in.publish("")
        stand_in.statistics()
        # When
        assert functions["settle"]()["done"] == manifests
        # Then
        requests, _ = stand_in.statistics()
    assert requests["GetObject"] == 1
    assert requests["BatchGetItem"] <= math.ceil(manifests / 100)
    # The last page is not full: for each dataset, for the commit documents of 500 manifests, and for each of two days
    pages = datasets + 1 + math.ceil(manifests / 500) + manifests * (night.objects + 1) / 1000
    assert requests["ListObjectsV2"] <= pages


def test_the_table_names_the_exceeded_limit_and_has_its_place_in_the_page() -> None:
    fast = Measured("A10", "plan", 20.0, 5.0, 100 << 20, {"Query": 3}, 0)
    slow = Measured("A10", "plan", 61.0, 5.0, 100 << 20, {"Query": 3}, 0)
    busy = Measured("A10", "divide", 61.0, 9.0, 100 << 20, {"Query": 3}, 0)
    text = format_table([fast, slow, busy], 1.0)
    assert [line.rsplit("| ", 1)[1] for line in text.splitlines()[4:7]] == ["met |", "NOT met |", "met |"]
    assert set(NIGHTS) == {"A10", "B10", "B100", "B1000", "B10000"}
    page = f"before\n{BEGIN_MARKER}\nold\n{END_MARKER}\nafter"
    assert replace_between(page, text, BEGIN_MARKER, END_MARKER).count(text) == 1
