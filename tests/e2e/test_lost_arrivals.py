"""A backfill that dies between its writes: the same backfill, started again, or the sweep settles every file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cli.demo.stages import NotificationsPaused
from lake.ledger import Ledger
from local import isolation
from router.requests.backfill import backfill
from router.services import Services
from tests.e2e.schedules import changed_schedule
from tests.e2e.stack_settings import e2e_settings
from tests.unit.lake.faults import Crash, Faults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.scenario import Scenario

AGE = timedelta(minutes=10)
"""How long ago the backfill died: longer than ``OWNER_GRACE``."""
ROWS = {"intent": 2, "first arrival row": 3, "all arrival rows": 4, "manifest document": 5, "dataset": 6}
"""The write before which the backfill dies, by what is there at least."""
FILES = 2


@pytest.fixture(autouse=True)
def no_scheduled_sweep(scenario: Scenario) -> Iterator[None]:
    """The schedule of the sweep is off: only tests start one, and read from its answer what it has taken."""
    with changed_schedule(scenario, lambda schedule: "Sweep" in schedule["Name"], State="DISABLED"):
        yield


def range_of(dataset: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    first, last = (f"{now + timedelta(hours=hours):%Y-%m-%dT%H}" for hours in (-1, 1))
    return {"dataset": dataset, "from": first, "to": last}


def lost_files(scenario: Scenario, dataset: str) -> None:
    """Put files without an event."""
    with NotificationsPaused(scenario.deployment):
        for number in range(FILES):
            scenario.put(f"{dataset}/{number}.ndjson", [f'{{"n": {number}}}'])


def backfill_that_dies(scenario: Scenario, dataset: str, number: int) -> None:
    """A backfill that died ten minutes ago, before its n-th write."""
    faults, deployment = Faults(), scenario.deployment
    faults.crash_before = number
    dynamodb = isolation.session(scenario.cloud.access_key).resource(
        "dynamodb", endpoint_url=scenario.cloud.endpoint, config=isolation.client_config()
    )
    # Not among the writes that are counted.
    ledger = Ledger.over(dynamodb.meta.client, deployment.resources.ledger_table)
    assert ledger.datasets.admit(dataset, e2e_settings().max_datasets, ())
    services = Services(
        settings=e2e_settings(),
        resources=deployment.resources,
        ledger=Ledger.over(faults.wrap(dynamodb.meta.client), deployment.resources.ledger_table),
        s3=faults.wrap(deployment.s3),
        glue=deployment.glue,
        clock=lambda: datetime.now(UTC),
    )
    at_that_time = replace(services, clock=lambda: datetime.now(UTC) - AGE)
    with pytest.raises(Crash):
        backfill({"action": "find", "request": range_of(dataset), "token": None}, at_that_time)


def sweep(scenario: Scenario) -> dict[str, int]:
    """One invocation of the deployed function."""
    functions = scenario.deployment.functions
    names = [item["FunctionName"] for item in functions.list_functions()["Functions"]]
    (name,) = (name for name in names if "sweep" in name.lower())
    answer = functions.invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()
    counts: dict[str, int] = json.loads(answer["Payload"].read())
    return counts


def intents(scenario: Scenario) -> int:
    bucket = scenario.deployment.resources.control_bucket
    return int(scenario.deployment.s3.list_objects_v2(Bucket=bucket, Prefix="intents/")["KeyCount"])


def assert_rows_once(scenario: Scenario, dataset: str, folder: Path) -> None:
    expected = Counter(f'{{"n": "{number}"}}' for number in range(FILES))
    assert scenario.lake_rows(dataset, folder) == expected


@pytest.mark.parametrize("left", ["first arrival row", "manifest document"])
def test_the_backfill_that_is_started_again_takes_the_files(scenario: Scenario, left: str, tmp_path: Path) -> None:
    dataset = f"repeated_{ROWS[left]}"
    lost_files(scenario, dataset)
    backfill_that_dies(scenario, dataset, ROWS[left])
    # When a person starts it again
    execution = scenario.execute(scenario.deployment.outputs.backfill, range_of(dataset))
    # Then every file is converted once
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    search = json.loads(execution["output"])["search"]
    assert (search["found"], search["recorded"], search["unsettled"]) == (FILES, FILES, 0)
    assert_rows_once(scenario, dataset, tmp_path)


def test_a_sweep_takes_what_is_left_of_several_and_nothing_twice(scenario: Scenario, tmp_path: Path) -> None:
    # Given backfills that died at different writes, which are not started again
    datasets = {f"swept_{number}": number for number in ROWS.values()}
    for dataset, number in datasets.items():
        lost_files(scenario, dataset)
        backfill_that_dies(scenario, dataset, number)
    # When the deployed sweep runs twice, and the night comes
    assert sweep(scenario)["resumed"] == FILES * len(datasets)
    assert sweep(scenario)["resumed"] == 0
    execution = scenario.execute(scenario.deployment.outputs.overnight, {})
    # Then every file is in the lake once, and no intent is left
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    for dataset in datasets:
        assert_rows_once(scenario, dataset, tmp_path)
    assert intents(scenario) == 0
