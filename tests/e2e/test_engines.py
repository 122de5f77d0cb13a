"""One input, converted through the launch path of every engine, gives the same lake."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.cost.cost import read_costs
from lake.engines import Engine
from lake.engines.description import MICRO
from lake.ledger import State
from local.limits import Limits
from router.catalog.handler import extended_table, new_table
from tests.e2e.scenario import Scenario

LINES = [
    *(json.dumps({"n": number, "nested": {"a": [number]}, "Größe": "Ω"}, ensure_ascii=False) for number in range(200)),
    '{"n": 1.10, "only": 1E400}',
    '{"n": 3} tail',
]
ROWS = Counter(
    [
        *(
            json.dumps({"n": str(number), "nested": f'{{"a": [{number}]}}', "__gr__0f6___0df_e": "Ω"}, sort_keys=True)
            for number in range(200)
        ),
        json.dumps({"n": "1.10", "only": "1E400"}, sort_keys=True),
    ]
)


def dataset_of(engine: Engine) -> str:
    return f"on_{engine.replace('-', '_')}"


def owner_of(scenario: Scenario, engine: Engine) -> str:
    """The id with which the newest job run of the engine holds its leases."""
    if engine == Engine.EMR_SERVERLESS:
        emr = scenario.cloud.client("emr-serverless")
        (application,) = emr.list_applications()["applications"]
        run = emr.list_job_runs(applicationId=application["id"])["jobRuns"][0]
        assert run["state"] == "SUCCESS"
        return f"emr-serverless:{application['id']}:{run['id']}"
    run = scenario.deployment.glue.get_job_runs(JobName=scenario.deployment.resources.batch_job)["JobRuns"][0]
    assert run["ExecutionClass"] == {"glue-flex": "FLEX", "glue": "STANDARD"}[engine]
    return str(run["Id"])


def billed_seconds(scenario: Scenario, job_run: str) -> float:
    """DPU seconds, or vCPU seconds of EMR Serverless, according to the service."""
    if job_run.startswith("emr-serverless:"):
        _, application, run = job_run.split(":")
        emr = scenario.cloud.client("emr-serverless")
        found = emr.get_job_run(applicationId=application, jobRunId=run)["jobRun"]
        return float(found["billedResourceUtilization"]["vCPUHour"]) * 3600
    job = scenario.deployment.resources.batch_job
    return float(scenario.deployment.glue.get_job_run(JobName=job, RunId=job_run)["JobRun"]["DPUSeconds"])


def check_cost(scenario: Scenario, engine: Engine, execution: str, dataset: str) -> None:
    """The night's job run has a cost row with the file that it converted."""
    today = datetime.now(UTC).date()
    (row,) = [row for row in scenario.costs() if row.execution == execution]
    assert (row.engine, row.id) == (engine, owner_of(scenario, engine))
    assert row.dpu_milliseconds + row.vcpu_milliseconds == pytest.approx(1000 * billed_seconds(scenario, row.id), abs=1)
    (share,) = row.shares
    assert (share.dataset, share.files, share.manifests, share.micro_dollars) == (dataset, 1, 1, row.micro_dollars)
    assert share.task_milliseconds > 0
    assert row.micro_dollars > 0
    # And the report of these days has it
    report = read_costs(scenario.deployment.ledger, today - timedelta(days=1), today, "engine")
    assert report.groups[engine].micro_dollars >= row.micro_dollars
    (night,) = [night for night in report.nights if night.execution == execution]
    assert (night.dollars, night.job_runs) == (row.micro_dollars / MICRO, 1)
    assert night.planned_dollars is not None


def check_catalog(scenario: Scenario, dataset: str) -> None:
    """The table describes its columns, and a second round would write nothing."""
    resources, ledger = scenario.deployment.resources, scenario.deployment.ledger
    table = scenario.deployment.glue.get_table(DatabaseName=resources.catalog_database, Name=dataset)["Table"]
    comments = {column["Name"]: column.get("Comment") for column in table["StorageDescriptor"]["Columns"]}
    assert (comments["__gr__0f6___0df_e"], comments["only"]) == ("key Größe", None)
    row = ledger.datasets.get(dataset)
    assert row is not None
    expected = new_table(row, resources.lake_bucket, resources.quarantine_bucket)
    assert extended_table(table, expected) is None
    assert [column["Name"] for column in table["PartitionKeys"]] == ["date", "hour"]


@pytest.mark.parametrize("engine", list(Engine))
def test_every_engine_gives_the_same_lake(scenario: Scenario, engine: Engine, tmp_path: Path) -> None:
    # Given the same file in its own dataset
    dataset = dataset_of(engine)
    file = scenario.queued(f"{dataset}/same.ndjson", LINES)
    # When a night with this engine converts it
    execution = scenario.execute(scenario.deployment.outputs.overnight, {"dataset": dataset, "engine": engine})
    # Then that engine ran it, and the lake has the same rows
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    verdict: dict[str, Any] = json.loads(execution["output"])
    assert verdict["verdict"] == "SUCCEEDED_WITH_QUARANTINE"
    row = scenario.wait_state(file, State.DONE)
    assert owner_of(scenario, engine) == row.owner
    check_cost(scenario, engine, execution["name"], dataset)
    assert scenario.lake_rows(dataset, tmp_path) == ROWS
    check_catalog(scenario, dataset)


def test_a_night_for_which_flex_has_no_capacity_is_done_before_its_deadline(scenario: Scenario, tmp_path: Path) -> None:
    # Given a night that the plan assigns to Flex, the cheapest engine, when there is no spare capacity
    file = scenario.queued("without_flex/a.ndjson", ['{"n": 1}'])
    with scenario.limited(Limits(flex_capacity=False, flex_wait_minutes=0)):
        # When
        execution = scenario.execute(scenario.deployment.outputs.overnight, {"dataset": "without_flex"})
    # Then its runs continued on another engine, before the run was abandoned
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    row = scenario.wait_state(file, State.DONE)
    assert scenario.lake_rows("without_flex", tmp_path) == {'{"n": "1"}': 1}
    # And the verdict reports that it ended in time
    bucket, _, key = json.loads(execution["output"])["verdictUri"].removeprefix("s3://").partition("/")
    document = scenario.deployment.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    assert json.loads(document)["lateMinutes"] == 0
    on_emr = str(row.owner).startswith(Engine.EMR_SERVERLESS)
    assert row.owner == owner_of(scenario, Engine.EMR_SERVERLESS if on_emr else Engine.GLUE)
