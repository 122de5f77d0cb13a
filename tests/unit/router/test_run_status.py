"""run_status: why job runs failed, what was denied, the engine of the next job run, take-over from every engine."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from lake.engines import Engine
from lake.engines.description import Bill
from lake.engines.emr_serverless import run_id
from lake.errors import InvalidDocumentError
from lake.layout import denial_key
from lake.ledger import DatasetMeasurement, SpeedSample, State
from lake.manifest import Partition
from lake.manifest_documents import format_blocked_run, read_denied, write_denied
from lake.time import iso_utc
from router.executions.run_status import found_no_capacity, next_engine, release_unheld, run_status
from router.telemetry import Metric, metrics
from tests.unit.lake.world import MORNING
from tests.unit.router.conftest import Deployment
from tests.unit.router.emr import emr_error
from tests.unit.router.planning import document, plan_overnight
from tests.unit.router.settling import RUN, done, planned, settled

REFUSAL = (
    "Glue.AccessDeniedException: User: arn:aws:sts::1:assumed-role/r/s is not authorized to perform: glue:StartJobRun"
)
FAILURE = "States.TaskFailed: jr_1 FAILED AccessDeniedException: not authorized to perform: dynamodb:UpdateItem"


def test_the_verdict_names_why_a_job_run_did_not_start(deployment: Deployment) -> None:
    # Given: a run with one done manifest, whose next job run is refused
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 1)
    # When
    status = run_status({"run": RUN, "refusal": f"{REFUSAL}\nnext line"}, deployment.services)
    # Then
    assert status == {"open": 1, "terminal": 1, "held": 0, "denied": 0}
    assert deployment.row(second.id).reason == f"its job run did not start: {REFUSAL}\\nnext line"
    assert deployment.row(first.id).reason is None
    assert REFUSAL in settled(deployment)["message"]
    # And a manifest that another run works on keeps its reason
    run = deployment.glue.start_job_run(JobName="batch-job")["JobRunId"]
    reason = deployment.claimed(deployment.row(second.id), run).reason
    run_status({"run": RUN, "refusal": "another"}, deployment.services)
    assert deployment.row(second.id).reason == reason


BLOCKED = f"States.TaskFailed: jr_1 FAILED {format_blocked_run('jr_1', 's3:PutObject on lake is denied')}"


@pytest.mark.parametrize(
    ("recorded", "failure", "reason"),
    [
        ("", FAILURE, f"its last job run failed: {FAILURE}"),
        ("its last job run failed: before", "States.Timeout: ", "its last job run failed: States.Timeout: "),
        ("its job run did not start: before", FAILURE, f"its last job run failed: {FAILURE}"),
        # The run's own record is more specific.
        ("s3:GetObject is denied", FAILURE, "s3:GetObject is denied"),
        # A job run that did not start would have recorded only the fault.
        ("", BLOCKED, "s3:PutObject on lake is denied"),
    ],
)
def test_the_verdict_names_how_a_job_run_failed_that_left_no_reason(
    deployment: Deployment, recorded: str, failure: str, reason: str
) -> None:
    (row,) = planned(deployment, "a.json")
    if recorded:
        deployment.ledger.manifests.record_reason(row, recorded)
    run_status({"run": RUN, "refusal": "", "failure": failure}, deployment.services)
    assert deployment.row(row.id).reason == reason
    assert reason in settled(deployment)["message"]


def test_what_an_ended_run_held_is_released_with_the_error_of_the_run(deployment: Deployment) -> None:
    # Given: a run that died while it held a manifest
    (row,) = planned(deployment, "a.json")
    deployment.glue.runs["batch-job"] = {"jr_1": "FAILED"}
    deployment.claimed(row, "jr_1")
    deployment.faults.reset()
    # When the function is invoked twice
    run_status({"run": RUN, "failure": FAILURE}, deployment.services)
    assert deployment.row(row.id).state == State.QUEUED
    status = run_status({"run": RUN, "failure": FAILURE}, deployment.services)
    # Then: one write does both, so that a kill does not leave the release without the error
    assert len(deployment.faults.writes) == 1
    assert status == {"open": 1, "terminal": 0, "held": 0, "denied": 0}
    reason = deployment.row(row.id).reason
    assert reason == f"run jr_1 has ended without finishing it; its last job run failed: {FAILURE}"


def test_open_manifests_that_were_denied_are_counted(deployment: Deployment) -> None:
    # Given: five manifests, one done and one held; three were denied, one of which is done by now
    rows = planned(deployment, *(f"{name}.json" for name in "abcde"))
    done(deployment, rows[0], 1)
    deployment.claimed(rows[1], deployment.glue.start_job_run(JobName="batch-job")["JobRunId"])
    write_denied(deployment.raw_s3, "control", RUN, [row.id for row in rows[:3]])
    # When, Then
    assert run_status({"run": RUN}, deployment.services) == {"open": 4, "terminal": 1, "held": 1, "denied": 1}


@pytest.mark.parametrize("body", [b"{", b"{}"])
def test_a_damaged_list_of_denied_manifests_is_named_by_the_verdict(deployment: Deployment, body: bytes) -> None:
    # Given a list that ends each job run
    (row,) = planned(deployment, "a.json")
    key = denial_key(RUN.removeprefix("s3://control/"))
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    with pytest.raises(InvalidDocumentError, match=key) as damaged:
        read_denied(deployment.raw_s3, "control", RUN)
    # When
    status = run_status({"run": RUN, "failure": str(damaged.value)}, deployment.services)
    # Then
    assert status == {"open": 1, "terminal": 0, "held": 0, "denied": 0}
    assert key in str(deployment.row(row.id).reason)
    assert key in settled(deployment)["message"]


FLEX, GLUE, EMR = Engine.GLUE_FLEX, Engine.GLUE, Engine.EMR_SERVERLESS
IN_TIME, LATE = MORNING + timedelta(minutes=1), MORNING - timedelta(minutes=1)
"""When a run has to begin, seen at ``MORNING``."""
RUNS = 4


@pytest.mark.parametrize(
    ("planned", "fallback", "engine", "begin_by", "no_capacity", "following"),
    [
        (FLEX, GLUE, FLEX, IN_TIME, True, GLUE),
        (GLUE, EMR, GLUE, LATE, False, EMR),
        # This happens only once, and not if the settings allow no other engine.
        (FLEX, GLUE, GLUE, LATE, True, GLUE),
        (FLEX, "", FLEX, LATE, True, FLEX),
    ],
)
def test_a_run_continues_on_a_dearer_engine_if_necessary(
    planned: Engine, fallback: str, engine: Engine, begin_by: datetime, no_capacity: bool, following: Engine
) -> None:
    run = {"engine": planned, "fallback": fallback, "beginBy": iso_utc(begin_by)}
    assert next_engine(run, engine, MORNING, no_capacity=no_capacity) == following


@pytest.mark.parametrize(
    ("engine", "refusal", "seconds", "failed", "found"),
    [
        (FLEX, "", 0, True, True),
        (FLEX, "", 0, False, False),
        (FLEX, "", None, True, False),
        (GLUE, "", 0, True, False),
        (GLUE, "Glue.ConcurrentRunsExceededException: 50 runs", None, True, True),
        (GLUE, "Glue.AccessDeniedException: no", None, True, False),
    ],
)
def test_what_is_a_lack_of_capacity(
    engine: Engine, refusal: str, seconds: int | None, failed: bool, found: bool
) -> None:
    known = None if seconds is None else Bill("jr_1", None, FLEX, "", "", seconds)
    assert found_no_capacity(engine, refusal, known, failed=failed) == found
    # A person may stop a waiting run.
    stopped = None if known is None else replace(known, state="STOPPED")
    assert not found_no_capacity(engine, "", stopped, failed=failed)


def planned_runs(deployment: Deployment, *engines: str) -> list[dict[str, Any]]:
    """The index of four runs of one manifest each, which take an hour of their 396 vCPUs."""
    deployment.configure(
        batch={"engines": list(engines), "run_bytes": 1, "workers": 100},
        quota={"dpus": 410},
        price={"dpu_hour": 0.44, "dpu_hour_flex": 0.29},
    )
    deployment.ledger.datasets.add_measurement(
        "orders", DatasetMeasurement(1, SpeedSample(100_000_000, 396 * 3600 * 10**9))
    )
    for hour in range(RUNS):
        deployment.queued(f"{hour}.json", partition=Partition("orders", "2026-11-20", hour))
    answer = plan_overnight(deployment)
    assert (answer["engine"], answer["runs"]) == ("glue-flex", RUNS)
    index: list[dict[str, Any]] = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    return index


def end_of_round(deployment: Deployment, run: str, *, seconds: int, **event: Any) -> dict[str, Any]:
    """The answer about a failed job run; Glue has metered ``seconds`` of it."""
    now = deployment.now
    deployment.glue.runs.setdefault("batch-job", {})["jr_1"] = "FAILED"
    deployment.glue.bills["jr_1"] = {
        "StartedOn": now - timedelta(minutes=20),
        "CompletedOn": now,
        "ExecutionTime": seconds,
        "DPUSeconds": 100.0 * seconds,
        "ExecutionClass": "FLEX",
        "Arguments": {"--run": run},
    }
    given = {"engine": "glue-flex", "failed": True, "jobRun": "jr_1", **event}
    return run_status({"run": run, **given}, deployment.services)


def test_the_plan_names_the_dearer_engine_and_the_latest_start_of_each_run(deployment: Deployment) -> None:
    index = planned_runs(deployment, "glue-flex", "glue")
    for item in index:
        assert (item["engine"], item["fallback"]) == ("glue-flex", "glue")
        run = document(deployment, item["run"])
        assert (run["fallback"], run["beginBy"]) == (item["fallback"], item["beginBy"])
        # An hour of work, the wait for capacity and the start
        assert run["beginBy"] < run["deadline"]


def test_only_a_run_without_capacity_or_time_continues_on_the_other_engine(
    deployment: Deployment,
) -> None:
    first, second, third, *_ = (item["run"] for item in planned_runs(deployment, "glue-flex", "glue"))
    assert end_of_round(deployment, first, seconds=0)["engine"] == "glue"
    assert end_of_round(deployment, second, seconds=60)["engine"] == "glue-flex"
    # When a run is done after the deadline, then it keeps its engine and is not late
    deployment.wait(timedelta(hours=24))
    (manifest,) = document(deployment, third)["manifests"]
    done(deployment, deployment.row(manifest), 10)
    assert end_of_round(deployment, third, seconds=0)["engine"] == "glue-flex"
    assert metrics.metric_set[Metric.NIGHT_LATE_MINUTES]["Value"] == [0, 0, 0]
    # When a run is late, then it continues, and the metric is raised
    assert end_of_round(deployment, second, seconds=60)["engine"] == "glue"
    assert metrics.metric_set[Metric.NIGHT_LATE_MINUTES]["Value"][-1] > 60


def test_what_cannot_be_judged_delays_no_conversion(deployment: Deployment) -> None:
    run = planned_runs(deployment, "glue-flex", "glue")[0]["run"]
    deployment.patch.setattr("router.executions.run_status.run_seconds", lambda *_: 1 / 0)
    answer = end_of_round(deployment, run, seconds=0)
    assert (answer["open"], answer["engine"]) == (1, "glue-flex")


APPLICATION, JOB_RUN = "00application", "00jobrun"
HOLDER = run_id(APPLICATION, JOB_RUN)


@pytest.mark.parametrize(
    ("answer", "is_released"),
    [
        ("QUEUED", False),
        ("CANCELLING", True),
        ("SUCCESS", True),
        ("CANCELLED", True),
        # Where the service does not know it, or cannot be reached, the lease decides.
        (emr_error("ResourceNotFoundException", "GetJobRun"), False),
        (EndpointConnectionError(endpoint_url="emr"), False),
        (emr_error("InternalServerException", "GetJobRun"), None),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_manifests_are_released_once_their_run_on_emr_serverless_has_ended(
    deployment: Deployment, answer: Any, is_released: bool | None
) -> None:
    # Given: two manifests of one run, whose status is requested once
    emr = Mock(**{"get_job_run.side_effect": [{"jobRun": {"state": answer}} if isinstance(answer, str) else answer]})
    deployment.services = replace(deployment.services, engines={"emr-serverless": emr})
    rows = [deployment.claimed(deployment.queued(name), HOLDER) for name in ("a.json", "b.json")]
    # When, Then
    with pytest.raises(ClientError) if is_released is None else nullcontext():
        released = release_unheld(deployment.services, [deployment.row(row.id) for row in rows])
        assert [row.id for row in released] == [row.id for row in rows] * bool(is_released)
    assert {deployment.row(row.id).state for row in rows} == {State.QUEUED if is_released else State.RUNNING}
    emr.get_job_run.assert_called_once_with(applicationId=APPLICATION, jobRunId=JOB_RUN)
