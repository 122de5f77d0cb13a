"""The engine of a run's next job run: a dearer one where it found no capacity, or begins too late."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lake.bills import Bill
from lake.engines import Engine
from lake.ledger import DatasetMeasurement
from lake.manifest import Partition
from lake.time import iso_utc
from router.executions.run_status import found_no_capacity, next_engine, run_status
from router.telemetry import metrics
from tests.unit.lake.world import MORNING
from tests.unit.router.planning import document, plan_overnight
from tests.unit.router.settling import done

if TYPE_CHECKING:
    from datetime import datetime

    from tests.unit.router.conftest import Deployment

FLEX, GLUE, EMR = Engine.GLUE_FLEX, Engine.GLUE, Engine.EMR_SERVERLESS
IN_TIME, LATE = MORNING + timedelta(minutes=1), MORNING - timedelta(minutes=1)
"""When a run has to begin, seen at ``MORNING``."""
RUNS = 4


def bill(seconds: int) -> Bill:
    return Bill("jr_1", None, FLEX, MORNING, MORNING, seconds)


@pytest.mark.parametrize(
    ("planned", "fallback", "engine", "begin_by", "no_capacity", "following"),
    [
        (FLEX, GLUE, FLEX, IN_TIME, False, FLEX),
        (FLEX, GLUE, FLEX, IN_TIME, True, GLUE),
        (FLEX, GLUE, FLEX, LATE, False, GLUE),
        (GLUE, EMR, GLUE, LATE, False, EMR),
        # Once only, and not where the settings allow no other engine.
        (FLEX, GLUE, GLUE, LATE, True, GLUE),
        (FLEX, "", FLEX, LATE, True, FLEX),
    ],
)
def test_a_run_goes_on_dearer_where_it_must(
    planned: Engine, fallback: str, engine: Engine, begin_by: datetime, no_capacity: bool, following: Engine
) -> None:
    run = {"engine": planned, "fallback": fallback, "beginBy": iso_utc(begin_by)}
    assert next_engine(run, engine, MORNING, no_capacity=no_capacity) == following


@pytest.mark.parametrize(
    ("engine", "refusal", "seconds", "failed", "found"),
    [
        (FLEX, "", 0, True, True),
        (FLEX, "", 60, True, False),
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
    known = None if seconds is None else bill(seconds)
    assert found_no_capacity(engine, refusal, known, failed=failed) == found


def planned_runs(deployment: Deployment, *engines: str) -> list[dict[str, Any]]:
    """The index of four runs of one manifest each, which take an hour of their 396 vCPUs."""
    deployment.configure(
        batch={"engines": list(engines), "run_bytes": 1, "workers": 100},
        quota={"dpus": 410},
        price={"dpu_hour": 0.44, "dpu_hour_flex": 0.29},
    )
    deployment.ledger.datasets.register("orders")
    deployment.ledger.datasets.add_measurement("orders", DatasetMeasurement(100_000_000, 1, 396 * 3600 * 10**9))
    for hour in range(RUNS):
        deployment.queued(f"{hour}.json", partition=Partition("orders", "2026-11-20", hour))
    answer = plan_overnight(deployment)
    assert (answer["engine"], answer["runs"]) == ("glue-flex", RUNS)
    index: list[dict[str, Any]] = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    return index


def end_of_round(deployment: Deployment, run: str, *, seconds: int, **event: Any) -> dict[str, Any]:
    """The answer to a job run that has failed; Glue has metered ``seconds`` of it."""
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


def late_minutes() -> float:
    return float(max(json.loads(json.dumps(metrics.serialize_metric_set()))["NightLateMinutes"]))


def test_the_plan_names_the_dearer_engine_and_when_each_run_has_to_begin(deployment: Deployment) -> None:
    for item in planned_runs(deployment, "glue-flex", "glue"):
        assert (item["engine"], item["fallback"]) == ("glue-flex", "glue")
        run = document(deployment, item["run"])
        assert (run["fallback"], run["beginBy"]) == (item["fallback"], item["beginBy"])
        # An hour of work, the wait for capacity and the start
        assert run["beginBy"] < run["deadline"]


def test_a_plan_of_one_engine_names_no_other(deployment: Deployment) -> None:
    assert [item["fallback"] for item in planned_runs(deployment, "glue-flex")] == [""] * RUNS


def test_a_run_without_capacity_goes_on_on_the_other_engine_and_no_other_run_does(deployment: Deployment) -> None:
    first, second, *_ = (item["run"] for item in planned_runs(deployment, "glue-flex", "glue"))
    assert end_of_round(deployment, first, seconds=0)["engine"] == "glue"
    assert end_of_round(deployment, second, seconds=60)["engine"] == "glue-flex"
    assert late_minutes() == 0


def test_a_run_that_is_late_goes_on_on_the_other_engine_and_raises_the_metric(deployment: Deployment) -> None:
    run = planned_runs(deployment, "glue-flex", "glue")[0]["run"]
    deployment.wait(timedelta(hours=24))
    assert end_of_round(deployment, run, seconds=60)["engine"] == "glue"
    assert late_minutes() > 60


def test_a_run_that_is_done_keeps_its_engine_and_is_not_late(deployment: Deployment) -> None:
    run = planned_runs(deployment, "glue-flex", "glue")[0]["run"]
    (manifest,) = document(deployment, run)["manifests"]
    done(deployment, deployment.row(manifest), 10)
    deployment.wait(timedelta(hours=24))
    assert end_of_round(deployment, run, seconds=0)["engine"] == "glue-flex"
    assert late_minutes() == 0


def test_what_cannot_be_judged_holds_up_no_conversion(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    run = planned_runs(deployment, "glue-flex", "glue")[0]["run"]
    monkeypatch.setattr("router.executions.run_status.late_minutes", lambda *_: 1 / 0)
    answer = end_of_round(deployment, run, seconds=0)
    assert (answer["open"], answer["engine"]) == (1, "glue-flex")
