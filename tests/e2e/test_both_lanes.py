"""Both lanes write the same lake rows for the same lines, whatever starts the conversion."""

import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.demo.run import notifications_paused
from cli.inspect.explain import explain_file
from cli.inspect.report import night_report
from lake.layout import S3Uri, lake_prefix, report_key
from lake.ledger import State
from lake.manifest import ObjectVersion
from local.limits import Limits
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import URGENT_BY_TAG
from tests.e2e.waiting import wait_for
from tests.records import KINESIS_STREAM

DATASET, BACKFILLED, CLICKS = "orders", "backfilled", "clicks"
MARKED: dict[str, dict[str, Any]] = {
    "tags": {"Tagging": "priority=high"},
    "metadata": {"Metadata": {"priority": "high"}},
}
"""Options of PutObject that make a file urgent, by what has them."""


def lines_of(origin: str) -> list[str]:
    """Three rows with the column ``origin``, and one invalid line."""
    rows = [
        {"origin": origin, "n": 1, "nested": {"a": [1, 2]}},
        {"origin": origin, "n": 2, "Größe": "Ω", "date": "2026-01-01"},
    ]
    return [
        *(json.dumps(row, ensure_ascii=False) for row in rows),
        f'{{"origin": "{origin}", "n": 1.10}}',
        '{"n": 3} tail',
    ]


def expected(*origins: str) -> Counter[str]:
    """The expected lake rows for files of these origins."""
    rows = []
    for origin in origins:
        rows.append({"origin": origin, "n": "1", "nested": '{"a": [1, 2]}'})
        rows.append({"origin": origin, "n": "2", "__gr__0f6___0df_e": "Ω", "date__": "2026-01-01"})
        rows.append({"origin": origin, "n": "1.10"})
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def put_records(scenario: Scenario) -> ObjectVersion:
    """Put three records, one with its own newline and one that is not JSON; return Firehose's object of them."""
    kinesis = scenario.cloud.client("kinesis")
    kinesis.create_stream(StreamName=KINESIS_STREAM, ShardCount=1)
    bodies = [b'{"page": "/", "n": 1}', b'{"page": "/cart", "n": 2}\n', b"not JSON"]
    records = [{"Data": body, "PartitionKey": "p"} for body in bodies]
    assert kinesis.put_records(StreamName=KINESIS_STREAM, Records=records)["FailedRecordCount"] == 0
    s3, bucket = scenario.deployment.s3, scenario.deployment.resources.input_bucket
    listed: Any = {"Bucket": bucket, "Prefix": f"{CLICKS}/records/{CLICKS}/"}
    (item,) = wait_for("the object of Firehose", lambda: s3.list_object_versions(**listed).get("Versions"))
    body = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
    assert gzip.decompress(body) == b"".join(record + b"\n" for record in bodies)
    return ObjectVersion(bucket, item["Key"], item["ETag"].strip('"'), item["Size"], "", item["VersionId"])


@pytest.fixture(scope="module")
def marked(scenario: Scenario) -> dict[str, ObjectVersion]:
    """Files with an urgent tag or urgent metadata, by the mark."""
    return {name: scenario.put(f"{URGENT_BY_TAG}/{name}.ndjson", ['{"n": 1}'], **MARKED[name]) for name in MARKED}


@pytest.fixture(scope="module")
def recorded(scenario: Scenario) -> ObjectVersion:
    """The object of records of a Kinesis stream, which are urgent."""
    return put_records(scenario)


@pytest.fixture(scope="module")
def urgent(scenario: Scenario, marked: dict[str, ObjectVersion], recorded: ObjectVersion) -> ObjectVersion:
    """An urgent file outside the stream window, so that ``route`` has to start the streaming job."""
    return scenario.put(f"{DATASET}/urgent/first.ndjson", lines_of("urgent"))


def test_an_urgent_file_starts_the_stream_and_is_published(scenario: Scenario, urgent: ObjectVersion) -> None:
    row = scenario.wait_state(urgent, State.DONE)
    assert row.lane == "stream"
    arrival = scenario.deployment.ledger.arrivals.get(urgent)
    assert arrival is not None
    assert "urgent" in arrival.reason


@pytest.mark.parametrize("attribute", MARKED)
def test_an_urgent_tag_or_metadata_is_enough(
    scenario: Scenario, marked: dict[str, ObjectVersion], attribute: str
) -> None:
    assert scenario.wait_state(marked[attribute], State.DONE).lane == "stream"
    arrival = scenario.deployment.ledger.arrivals.get(marked[attribute])
    assert arrival is not None
    assert arrival.reason == f"urgent: priority=high is in its {attribute}"


def test_records_of_a_kinesis_stream_are_rows(scenario: Scenario, recorded: ObjectVersion, tmp_path: Path) -> None:
    manifest = scenario.wait_state(recorded, State.DONE)
    assert (manifest.lane, manifest.partition.dataset) == ("stream", CLICKS)
    rows = [{"page": "/", "n": "1"}, {"page": "/cart", "n": "2"}]
    assert scenario.lake_rows(CLICKS, tmp_path) == Counter(json.dumps(row, sort_keys=True) for row in rows)
    assert manifest.published is not None
    assert (manifest.published.totals.rows, sum(manifest.published.totals.rejects.values())) == (2, 1)


def test_the_idle_stream_ends_by_itself(scenario: Scenario, urgent: ObjectVersion) -> None:
    scenario.wait_state(urgent, State.DONE)
    job = scenario.deployment.resources.stream_job

    def ended() -> bool:
        runs = scenario.deployment.glue.get_job_runs(JobName=job)["JobRuns"]
        return bool(runs) and all(run["JobRunState"] == "SUCCEEDED" for run in runs)

    wait_for("the streaming run to end SUCCEEDED", ended)


@pytest.fixture(scope="module")
def night(scenario: Scenario) -> tuple[ObjectVersion, dict[str, Any]]:
    """A file of the batch lane, and the execution that a person has started for it."""
    file = scenario.queued(f"{DATASET}/overnight.ndjson", lines_of("overnight"))
    return file, scenario.execute(scenario.deployment.outputs.overnight, {})


def test_overnight_from_the_console(scenario: Scenario, night: tuple[ObjectVersion, dict[str, Any]]) -> None:
    file, execution = night
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    # Each file has an invalid line.
    verdict = json.loads(execution["output"])
    assert (verdict["verdict"], verdict["damagedObjects"]) == ("SUCCEEDED_WITH_QUARANTINE", 0)
    assert scenario.wait_state(file, State.DONE).lane == "batch"
    # The page of settle, and the one that the command makes, have the verdict's numbers.
    deployment = scenario.deployment
    page = deployment.s3.get_object(Bucket=deployment.resources.control_bucket, Key=report_key(execution["name"]))
    assert f">{verdict['rows']}</b><span>rows published" in page["Body"].read().decode()
    report = night_report(deployment, execution["name"], datetime.now(UTC))
    assert (report.figures.total.rows, report.figures.total.rejects.total()) == (verdict["rows"], verdict["rejects"])
    assert {run.execution for run in report.costs.job_runs} == {execution["name"]}
    explanation = explain_file(deployment, S3Uri(file.bucket, file.key), 1, datetime.now(UTC))
    assert [(version.lane, version.outcome) for version in explanation.versions] == [("batch", "QUARANTINED_LINES")]


def test_backfill_started_by_a_person(scenario: Scenario) -> None:
    # Given a file whose event was lost.
    with notifications_paused(scenario.deployment):
        file = scenario.put(f"{BACKFILLED}/older.ndjson", lines_of("backfill"))
    assert scenario.manifest_of(file) is None
    now = datetime.now(UTC)
    hours = {"from": f"{now - timedelta(hours=1):%Y-%m-%dT%H}", "to": f"{now + timedelta(hours=1):%Y-%m-%dT%H}"}
    request = {"dataset": BACKFILLED, **hours}
    # When the backfill is a dry run, nothing changes; otherwise the file is converted.
    machine = scenario.deployment.outputs.backfill
    dry = scenario.execute(machine, {**request, "dryRun": True})
    assert dry["status"] == "SUCCEEDED", dry.get("cause")
    assert scenario.manifest_of(file) is None
    # This also holds when the index of open manifests lags, so that a plan would not find the new records at once.
    with scenario.limited(Limits(index_lag_seconds=4)):
        real = scenario.execute(machine, request)
    assert real["status"] == "SUCCEEDED", real.get("cause")
    assert json.loads(real["output"])["overnight"]["verdict"] == "SUCCEEDED_WITH_QUARANTINE"
    first = scenario.wait_state(file, State.DONE)
    assert (first.lane, first.generation) == ("batch", 1)
    # When it is repeated, then the file is known and not converted; with force it is converted again.
    known = scenario.execute(machine, request)
    assert json.loads(known["output"])["search"]["known"] == 1
    assert scenario.wait_state(file, State.DONE) == first
    forced = scenario.execute(machine, {**request, "force": True})
    assert json.loads(forced["output"])["search"]["reprocessed"] == 1, forced.get("cause")
    row = scenario.wait_state(file, State.DONE)
    assert row.published is not None
    assert (row.id, row.generation, row.published.generation) == (first.id, 2, 2)
    # And both generations are there until the sweep removes the first, after the grace period.
    for generation in (1, 2):
        prefix = lake_prefix(row.partition, row.id, generation)
        bucket = scenario.deployment.resources.lake_bucket
        assert scenario.deployment.s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["KeyCount"] == 1


def test_the_scheduler_starts_overnight(scenario: Scenario) -> None:
    file = scenario.queued(f"{DATASET}/scheduled.ndjson", lines_of("scheduled"))
    with scenario.started_soon("Overnight"):
        assert scenario.wait_state(file, State.DONE).lane == "batch"


def test_the_lake_has_the_rows_of_all_files(scenario: Scenario, tmp_path: Path) -> None:
    """Row by row, with a reader that shares no code with the product; it needs the files of the tests above."""
    origins = ("urgent", "overnight", "scheduled")
    assert scenario.lake_rows(DATASET, tmp_path) == expected(*origins)
