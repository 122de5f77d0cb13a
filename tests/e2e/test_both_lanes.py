"""Every way a file can go ends in the same lake."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from aws_lambda_powertools.utilities.data_classes import SQSEvent

from cli.demo.stages import NotificationsPaused
from lake.ledger import State
from lake.settings import PeakSettings
from router.route.handler import route
from router.services import Services
from tests.e2e.conftest import e2e_settings
from tests.e2e.scenario import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from lake.manifest import ObjectVersion
    from tests.e2e.scenario import Scenario

DATASET = "orders"


def lines_of(way: str) -> list[str]:
    """Three rows that name their way, and one line that is no row."""
    rows = [
        {"way": way, "n": 1, "nested": {"a": [1, 2]}},
        {"way": way, "n": 2, "Größe": "Ω", "date": "2026-01-01"},
    ]
    return [*(json.dumps(row, ensure_ascii=False) for row in rows), f'{{"way": "{way}", "n": 1.10}}', '{"n": 3} tail']


def expected(*ways: str) -> Counter[str]:
    """The rows of these ways as the lake must have them, written out by hand."""
    rows = []
    for way in ways:
        rows.append({"way": way, "n": "1", "nested": '{"a": [1, 2]}'})
        rows.append({"way": way, "n": "2", "__gr__0f6___0df_e": "Ω", "date__": "2026-01-01"})
        rows.append({"way": way, "n": "1.10"})
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def s3_event(file: ObjectVersion) -> dict[str, object]:
    """The SQS batch that S3 and Lambda make of a put."""
    record = {
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "s3": {
            "bucket": {"name": file.bucket},
            "object": {"key": file.key, "size": file.size, "eTag": file.etag, "versionId": file.version_id},
        },
    }
    return {"Records": [{"messageId": "1", "body": json.dumps({"Records": [record]})}]}


def peak_services(scenario: Scenario, now: datetime) -> Services:
    """The services of ``route`` at a given time, with peak hours."""
    settings = replace(e2e_settings(), peak=PeakSettings(hours=("08:00-20:00",), days=("mon",)))
    deployment = scenario.deployment
    return Services(
        settings=settings,
        resources=deployment.resources,
        ledger=deployment.ledger,
        s3=deployment.s3,
        glue=deployment.glue,
        clock=lambda: now,
    )


@pytest.fixture(scope="module")
def urgent(scenario: Scenario) -> ObjectVersion:
    """Outside the stream window: the file itself has to start the streaming job."""
    return scenario.put(f"{DATASET}/urgent/first.ndjson", lines_of("urgent"))


def test_an_urgent_file_starts_the_stream_and_is_published(scenario: Scenario, urgent: ObjectVersion) -> None:
    row = scenario.wait_state(urgent, State.DONE)
    assert row.lane == "stream"
    arrival = scenario.deployment.ledger.arrivals.get(urgent)
    assert arrival is not None
    assert "urgent" in arrival.reason


def test_a_file_at_peak_goes_through_the_stream(scenario: Scenario, urgent: ObjectVersion) -> None:
    # Given a file whose event has not come, and a Monday noon in Berlin.
    with NotificationsPaused(scenario.deployment):
        file = scenario.put(f"{DATASET}/peak.ndjson", lines_of("peak"))
    noon = datetime(2026, 11, 23, 11, 0, tzinfo=UTC)
    # When route handles the event.
    answer = route(SQSEvent(s3_event(file)), peak_services(scenario, noon))
    # Then it is acknowledged, goes the stream's way and is published.
    assert answer == {"batchItemFailures": []}
    arrival = scenario.deployment.ledger.arrivals.get(file)
    assert arrival is not None
    assert arrival.reason == "peak hours 08:00-20:00 Europe/Berlin"
    assert scenario.wait_state(file, State.DONE).lane == "stream"


def test_the_idle_stream_ends_by_itself(scenario: Scenario, urgent: ObjectVersion) -> None:
    scenario.wait_state(urgent, State.DONE)
    job = scenario.deployment.resources.stream_job

    def ended() -> bool:
        runs = scenario.deployment.glue.get_job_runs(JobName=job)["JobRuns"]
        return bool(runs) and all(run["JobRunState"] == "SUCCEEDED" for run in runs)

    wait_for("the streaming run to end SUCCEEDED", ended)


def test_overnight_from_the_console(scenario: Scenario) -> None:
    file = scenario.put(f"{DATASET}/night.ndjson", lines_of("overnight"))
    scenario.wait_state(file, State.QUEUED)
    execution = scenario.execute(scenario.deployment.outputs.overnight, {})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert json.loads(execution["output"])["verdict"] == "SUCCEEDED"
    assert scenario.wait_state(file, State.DONE).lane == "batch"


def test_overnight_with_nothing_to_do(scenario: Scenario) -> None:
    execution = scenario.execute(scenario.deployment.outputs.overnight, {})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert json.loads(execution["output"])["verdict"] == "EMPTY"


def test_backfill_by_hand(scenario: Scenario) -> None:
    # Given a file that nobody was told of.
    with NotificationsPaused(scenario.deployment):
        file = scenario.put(f"{DATASET}/older.ndjson", lines_of("backfill"))
    assert scenario.manifest_of(file) is None
    now = datetime.now(UTC)
    request = {
        "dataset": DATASET,
        "from": f"{now - timedelta(hours=1):%Y-%m-%dT%H}",
        "to": f"{now + timedelta(hours=1):%Y-%m-%dT%H}",
    }
    # When a dry run looks, nothing changes; when the backfill runs, it is converted.
    machine = scenario.deployment.outputs.backfill
    dry = scenario.execute(machine, {**request, "dryRun": True})
    assert dry["status"] == "SUCCEEDED", dry.get("cause")
    assert scenario.manifest_of(file) is None
    wet = scenario.execute(machine, request)
    assert wet["status"] == "SUCCEEDED", wet.get("cause")
    assert scenario.wait_state(file, State.DONE).lane == "batch"


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"dataset": DATASET, "from": "2026-11-01", "to": "2026-11-02", "hours": 3}, "hours"),
        ({"dataset": DATASET, "from": "2026-11-03", "to": "2026-11-02"}, "from"),
        ({"dataset": "nobody", "from": "2026-11-01", "to": "2026-11-02"}, "nobody"),
        ({}, "dataset"),
    ],
)
def test_wrong_backfill_input_fails_in_the_first_state(
    scenario: Scenario, request_: dict[str, object], sentence: str
) -> None:
    execution = scenario.execute(scenario.deployment.outputs.backfill, request_)
    assert execution["status"] == "FAILED"
    assert "InvalidInputError" in execution["error"]
    assert sentence in execution["cause"]


def test_the_scheduler_starts_overnight(scenario: Scenario) -> None:
    # Given a file that waits, and the deployed schedule moved to a few seconds from now.
    file = scenario.put(f"{DATASET}/scheduled.ndjson", lines_of("scheduled"))
    scenario.wait_state(file, State.QUEUED)
    scheduler = scenario.cloud.client("scheduler")
    name = scenario.deployment.outputs.overnight_schedule
    schedule = scheduler.get_schedule(Name=name)
    assert schedule["ScheduleExpressionTimezone"] == "Europe/Berlin"
    soon = datetime.now(UTC) + timedelta(seconds=3)
    # When its time comes.
    scheduler.update_schedule(
        Name=name,
        ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
        ScheduleExpressionTimezone="UTC",
        FlexibleTimeWindow=schedule["FlexibleTimeWindow"],
        Target=schedule["Target"],
    )
    # Then the file is converted without anybody starting anything.
    assert scenario.wait_state(file, State.DONE).lane == "batch"


def test_all_ways_give_one_lake(scenario: Scenario, tmp_path: Path) -> None:
    """Row by row, by a reader that shares no code with the product; runs last in this file."""
    assert scenario.lake_rows(DATASET, tmp_path) == expected("urgent", "peak", "overnight", "backfill", "scheduled")


def test_a_table_waits_for_athena(scenario: Scenario) -> None:
    glue = scenario.deployment.glue
    table = glue.get_table(DatabaseName=scenario.deployment.resources.catalog_database, Name=DATASET)["Table"]
    names = {column["Name"] for column in table["StorageDescriptor"]["Columns"]}
    assert {"way", "n", "nested", "date__", "_rescued"} <= names
    assert [column["Name"] for column in table["PartitionKeys"]] == ["date", "hour"]
    assert table["Parameters"]["projection.enabled"] == "true"
