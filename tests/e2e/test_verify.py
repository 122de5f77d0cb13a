"""`hybrid-router verify` on the local cloud: both lanes are proven, and what is lost afterwards is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.verify import DIFFERS, NOT_REACHABLE, PROVEN, WRONG_USE, verify
from lake.layout import verification_key
from lake.ledger import State
from tests.e2e.test_both_lanes import lines_of

if TYPE_CHECKING:
    from tests.e2e.scenario import Scenario

DATASET = "verified"


@pytest.fixture(scope="module")
def hours(scenario: Scenario) -> dict[str, str]:
    """A file of each lane, converted."""
    urgent = scenario.put(f"{DATASET}/urgent/a.ndjson", lines_of("urgent"))
    waiting = scenario.put(f"{DATASET}/b.ndjson", lines_of("waiting"))
    scenario.wait_state(urgent, State.DONE)
    scenario.wait_state(waiting, State.QUEUED)
    assert scenario.execute(scenario.deployment.outputs.overnight, {})["status"] == "SUCCEEDED"
    stamps = [scenario.wait_state(file, State.DONE).partition.stamp for file in (urgent, waiting)]
    return {"dataset": DATASET, "from": min(stamps), "to": max(stamps)}


def run(
    scenario: Scenario, options: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    code = verify(scenario.deployment, options, 1.0, as_json=True)
    return code, json.loads(capsys.readouterr().out)["hours"]


def test_both_lanes_are_proven(scenario: Scenario, hours: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, reports = run(scenario, hours, capsys)
    assert code == PROVEN, reports
    assert sum(report["rows"] for report in reports) == 6
    assert sum(report["rejects"] for report in reports) == 2
    assert sum(report["manifests"] for report in reports) == 2


@pytest.mark.parametrize("bucket", ["lake_bucket", "quarantine_bucket"])
def test_a_missing_object_is_found(
    scenario: Scenario, hours: dict[str, str], bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given an object that was deleted by hand
    s3, name = scenario.deployment.s3, getattr(scenario.deployment.resources, bucket)
    key = s3.list_objects_v2(Bucket=name, Prefix=f"{DATASET}/")["Contents"][0]["Key"]
    body = s3.get_object(Bucket=name, Key=key)["Body"].read()
    s3.delete_object(Bucket=name, Key=key)

    # When
    code, reports = run(scenario, hours, capsys)
    s3.put_object(Bucket=name, Key=key, Body=body)

    # Then
    assert code == DIFFERS
    assert f"s3://{name}/{key}" in {item["uri"] for report in reports for item in report["differences"]}
    assert run(scenario, hours, capsys)[0] == PROVEN


def verify_date(scenario: Scenario, date: str) -> tuple[str, list[dict[str, Any]], str]:
    """Status of an execution of the machine ``verify``, what it has found of the dataset, and the id of its job run."""
    outputs, s3 = scenario.deployment.outputs, scenario.deployment.s3
    machine = outputs.overnight.removesuffix("overnight") + "verify"
    status = scenario.execute(machine, {"date": date})["status"]
    key = verification_key(date, early=True)
    body = s3.get_object(Bucket=outputs.resources.control_bucket, Key=key)["Body"].read()
    return status, json.loads(body)["datasets"][DATASET], json.loads(body)["run"]


def test_the_deployed_machine_finds_a_missing_object_of_the_date(scenario: Scenario, hours: dict[str, str]) -> None:
    # Given a date whose hours are proven
    date = hours["to"].partition("T")[0]
    _, reports, _ = verify_date(scenario, date)
    assert {report["outcome"] for report in reports} == {"proven"}, reports
    # When an object is deleted by hand
    s3, name = scenario.deployment.s3, scenario.deployment.resources.lake_bucket
    key = s3.list_objects_v2(Bucket=name, Prefix=f"{DATASET}/date={date}/")["Contents"][0]["Key"]
    body = s3.get_object(Bucket=name, Key=key)["Body"].read()
    s3.delete_object(Bucket=name, Key=key)
    status, reports, run = verify_date(scenario, date)
    s3.put_object(Bucket=name, Key=key, Body=body)
    # Then the execution has failed, which raises an alarm
    assert status == "FAILED"
    assert f"s3://{name}/{key}" in {item["uri"] for report in reports for item in report["differences"]}
    log = next(scenario.cloud.logs_dir.rglob(f"{run}.log")).read_text()
    assert any(line.startswith(f"ALARM verify {DATASET} ") for line in log.splitlines())


def test_what_has_not_been_converted_is_not_proven(
    scenario: Scenario, hours: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = scenario.put(f"{DATASET}/c.ndjson", lines_of("late"))
    row = scenario.wait_state(file, State.QUEUED)
    late = {"dataset": DATASET, "from": row.partition.stamp, "to": row.partition.stamp}
    assert run(scenario, late, capsys)[0] == NOT_REACHABLE


def test_wrong_use_says_what_to_pass(
    scenario: Scenario, hours: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(scenario.deployment, {**hours, "to": "yesterday"}, 1.0, as_json=False) == WRONG_USE
    assert verify(scenario.deployment, hours, 0.0, as_json=False) == WRONG_USE
    assert "--share = 0.0" in capsys.readouterr().err
