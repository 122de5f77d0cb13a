"""`hybrid-router verify` on the local cloud: both lanes are proven, and later losses are found."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from lake.layout import verification_key
from lake.ledger import ManifestRow, State
from tests.e2e.scenario import Scenario
from tests.e2e.test_both_lanes import lines_of

DATASET = "verified"
STAGE = "e2e"


@pytest.fixture(scope="module")
def converted(scenario: Scenario) -> list[ManifestRow]:
    """The manifests of a file of each lane: ``urgent/a.ndjson`` and ``b.ndjson``."""
    urgent = scenario.put(f"{DATASET}/urgent/a.ndjson", lines_of("urgent"))
    waiting = scenario.put(f"{DATASET}/b.ndjson", [*lines_of("waiting"), "not JSON"])
    scenario.wait_state(urgent, State.DONE)
    scenario.wait_state(waiting, State.QUEUED)
    assert scenario.execute(scenario.deployment.outputs.overnight, {})["status"] == "SUCCEEDED"
    return [scenario.wait_state(file, State.DONE) for file in (urgent, waiting)]


@pytest.fixture
def hours(
    scenario: Scenario, converted: list[ManifestRow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The options of ``verify``, where ``--local`` finds the scenario's stack as ``local up`` leaves it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    scenario.leave_local_state(STAGE)
    stamps = [row.partition.stamp for row in converted]
    return {"dataset": DATASET, "from": min(stamps), "to": max(stamps)}


def run(hours: dict[str, str]) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of ``hybrid-router verify`` as a person runs it, and the report of each hour."""
    arguments = [text for name, value in hours.items() for text in (f"--{name}", value)]
    result = CliRunner().invoke(app, ["verify", *arguments, "--json", "--local", "--stage", STAGE])
    return result.exit_code, json.loads(result.stdout)["hours"]


def test_a_repaired_line_becomes_a_row_of_its_hour_once(
    scenario: Scenario, converted: list[ManifestRow], hours: dict[str, str], tmp_path: Path
) -> None:
    # Given a rejected line that a person has exported and repaired
    def call(*arguments: str) -> dict[str, Any]:
        return dict(json.loads(CliRunner().invoke(app, [*arguments, "--json", "--local", "--stage", STAGE]).stdout))

    def quarantine(*arguments: str) -> dict[str, Any]:
        return call("quarantine", *arguments)

    repaired, row = tmp_path / "repaired.ndjson", converted[1]
    source = f"s3://{scenario.deployment.resources.input_bucket}/{DATASET}/b.ndjson"
    exported = quarantine("export", str(repaired), "--file", source)
    lines = repaired.read_text().splitlines()
    repaired.write_text("".join('{"repaired": true}\n' if line == "not JSON" else "\n" for line in lines))
    # When it is resubmitted, twice, and the night is over
    first, second = (quarantine("retry", str(repaired)) for _ in range(2))
    assert call("sweep", "--dry-run")["resumed"] == 0
    assert call("overnight", "--dataset", DATASET)["verdict"] == "SUCCEEDED"
    # Then it is a row of its hour, once, the hours are proven, and the quarantine shows the resubmission
    assert (exported["lines"], second["resubmissions"], second["resubmitted"]) == (2, [], 1)
    rows = scenario.lake_rows(DATASET, tmp_path)
    assert (rows.total(), rows['{"repaired": "true"}']) == (7, 1)
    ledger, partition = scenario.deployment.ledger, row.partition
    of_the_hour = [ledger.manifests.get(name) for name in ledger.partitions.manifests(partition)]
    assert {manifest.state for manifest in of_the_hour if manifest is not None} == {State.DONE}
    assert [answer["partition"] for answer in first["resubmissions"]] == [str(partition)]
    assert quarantine("ls", "--file", source)["resubmitted"] == 1
    code, reports = run(hours)
    sums = [sum(report[name] for report in reports) for name in ("rows", "rejects", "manifests")]
    assert (code, sums) == (ExitCode.OK, [7, 3, 3]), reports
    # And a dry run of a backfill finds nothing else to convert
    search = call("backfill", *(text for name, value in hours.items() for text in (f"--{name}", value)), "--dry-run")
    assert (search["output"]["search"]["found"], search["output"]["search"]["recorded"]) == (2, 0)
    assert [shard["files"] for shard in call("stream", "status")["shards"]] == [0]


def verify_date(scenario: Scenario, date: str) -> tuple[str, list[dict[str, Any]], str]:
    """Status of an execution of the machine ``verify``, its report of the dataset, and the id of its job run."""
    outputs, s3 = scenario.deployment.outputs, scenario.deployment.s3
    machine = outputs.overnight.removesuffix("overnight") + "verify"
    status = scenario.execute(machine, {"date": date})["status"]
    key = verification_key(date, early=True)
    body = s3.get_object(Bucket=outputs.resources.control_bucket, Key=key)["Body"].read()
    return status, json.loads(body)["datasets"][DATASET], json.loads(body)["run"]


def test_the_deployed_machine_finds_a_missing_object_of_the_date(scenario: Scenario, hours: dict[str, str]) -> None:
    # Given an object that was deleted by hand
    date = hours["to"].partition("T")[0]
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
    assert any(f" ALARM verify {DATASET} " in line for line in log.splitlines())
