"""``run_status`` compares an execution with its plan, and switches its engine once where it would end too late."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from lake.ledger import DatasetMeasurement
from lake.ledger.executions import Executions
from lake.partition import Partition
from router.run_status.handler import run_status
from router.telemetry import metrics
from tests.unit.lake.world import MORNING
from tests.unit.router.planning import document, plan_overnight
from tests.unit.router.settling import done

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from tests.unit.router.conftest import Deployment

RUNS = 4
OPEN = {"open": 1, "terminal": 0, "held": 0, "denied": 0}


@dataclass
class Night:
    """A planned execution of four runs of one manifest each, which take an hour of their 396 vCPUs."""

    deployment: Deployment
    index: list[dict[str, Any]]

    def end_of_round(self, number: int, *, seconds: int, **event: Any) -> dict[str, Any]:
        """The answer to a job run that failed, unless ``event`` says otherwise; Glue has metered ``seconds`` of it."""
        run, job_run, now = self.index[number]["run"], f"jr_{number}", self.deployment.now
        self.deployment.glue.runs.setdefault("batch-job", {})[job_run] = "FAILED"
        self.deployment.glue.bills[job_run] = {
            "StartedOn": now - timedelta(minutes=20),
            "CompletedOn": now,
            "ExecutionTime": seconds,
            "DPUSeconds": 100.0 * seconds,
            "ExecutionClass": "FLEX",
            "Arguments": {"--run": run},
        }
        given = {"engine": "glue-flex", "failed": True, "stalled": 0, "jobRun": job_run, **event}
        return run_status({"run": run, **given}, self.deployment.services)

    def next_round(self, number: int) -> dict[str, Any]:
        question = {"next": True, "run": self.index[number]["run"], "engine": "glue-flex", "workers": 100}
        return run_status(question, self.deployment.services)

    def manifest(self, number: int) -> ManifestRow:
        (manifest,) = document(self.deployment, self.index[number]["run"])["manifests"]
        return self.deployment.row(manifest)

    @property
    def row(self) -> dict[str, Any]:
        return self.deployment.ledger.executions.get("overnight") or {}

    def wait_until(self, before_deadline: timedelta) -> None:
        self.deployment.now = datetime.fromisoformat(self.row["plan"]["deadline"]) - before_deadline


def a_night(deployment: Deployment, *engines: str, side_by_side: int = 4, **batch: Any) -> Night:
    deployment.configure(
        batch={"engines": list(engines), "run_manifests": 1, "workers": 100, **batch},
        quota={"dpus": 10 + 100 * side_by_side},
        price={"flex_wait_minutes": 10, "dpu_hour": 0.44, "dpu_hour_flex": 0.29},
    )
    deployment.ledger.datasets.register("orders")
    deployment.ledger.datasets.add_measurement("orders", DatasetMeasurement(100_000_000, 1, 396 * 3600 * 10**9))
    for hour in range(RUNS):
        deployment.queued(f"{hour}.json", partition=Partition("orders", "2026-11-20", hour))
    answer = plan_overnight(deployment)
    assert (answer["engine"], answer["runs"], answer["maxConcurrency"]) == ("glue-flex", RUNS, side_by_side)
    assert 60 < answer["forecast"]["minutes"] * answer["maxConcurrency"] / RUNS < 75
    return Night(deployment, document(deployment, "s3://{bucket}/{key}".format(**answer["index"])))


def late_minutes() -> float:
    (value,) = json.loads(json.dumps(metrics.serialize_metric_set()))["NightLateMinutes"]
    return float(value)


def test_a_bill_is_read_once(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    night = a_night(deployment, "glue-flex", "glue")
    asked: list[str] = []
    answer = deployment.glue.get_job_run

    def get_job_run(JobName: str, RunId: str) -> Any:  # noqa: N803
        asked.append(RunId)
        return answer(JobName, RunId)

    monkeypatch.setattr(deployment.glue, "get_job_run", get_job_run)
    # When the end of a job run is looked at, for its cost and for the progress of the night
    night.end_of_round(0, seconds=60)
    # Then
    assert asked == ["jr_0"]


def test_a_run_waits_for_spare_capacity_while_there_is_time(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex", "glue")
    assert night.end_of_round(0, seconds=0) == {**OPEN, "switched": False}
    assert night.next_round(0) == {"engine": "glue-flex", "workers": 100}
    assert "switch" not in night.row
    assert late_minutes() == 0


def test_what_is_left_is_switched_in_time_for_all_runs(deployment: Deployment) -> None:
    # Given: capacity has not come, and one more wait would be too long
    night = a_night(deployment, "glue-flex", "glue")
    night.wait_until(timedelta(hours=1.5))
    # When
    assert night.end_of_round(0, seconds=0) == {**OPEN, "switched": True}
    # Then every run learns of it, whether it has begun or not
    for number in range(RUNS):
        assert night.next_round(number)["engine"] == "glue"
    switch = night.row["switch"]
    assert (switch["from_engine"], switch["engine"]) == ("glue-flex", "glue")
    assert switch["reason"] == "spare capacity did not come"
    assert switch["micro_dollars"] > switch["planned_micro_dollars"] > 0
    # And it is in time
    assert late_minutes() == 0


def test_the_first_run_that_switches_decides(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex", "glue")
    night.wait_until(timedelta(hours=1.5))
    night.end_of_round(0, seconds=0)
    first = night.row["switch"]
    # When the next one fails as well, and later one on the new engine
    deployment.wait(timedelta(minutes=1))
    assert night.end_of_round(1, seconds=0)["switched"]
    assert not night.end_of_round(2, seconds=0, engine="glue")["switched"]
    assert night.row["switch"] == first
    # And of two at the same time one is refused
    assert not deployment.ledger.executions.switch_engine("overnight", {"engine": "emr-serverless"})


def test_an_execution_that_was_switched_still_tells_that_it_is_late(deployment: Deployment) -> None:
    # Given: a switch in time
    night = a_night(deployment, "glue-flex", "glue")
    night.wait_until(timedelta(hours=1.5))
    night.end_of_round(0, seconds=0)
    metrics.clear_metrics()
    # When a run on the new engine fails shortly before the deadline, after an hour of work
    night.wait_until(timedelta(minutes=10))
    assert not night.end_of_round(1, seconds=3600, engine="glue")["switched"]
    # Then
    assert late_minutes() > 30


def test_a_run_that_would_be_abandoned_is_switched_though_there_is_time(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex", "glue", max_attempts=3)
    assert not night.end_of_round(0, seconds=0, stalled=1)["switched"]
    assert night.end_of_round(0, seconds=0, stalled=2)["switched"]


@pytest.mark.parametrize("seconds", [1, 3600])
def test_a_job_run_that_worked_and_failed_says_nothing_about_capacity(deployment: Deployment, seconds: int) -> None:
    night = a_night(deployment, "glue-flex", "glue")
    assert not night.end_of_round(0, seconds=seconds, stalled=2)["switched"]


def test_runs_that_take_longer_than_planned_are_noticed_by_the_first_that_ends(deployment: Deployment) -> None:
    # Given: of four runs, two side by side, the first was done after two hours instead of one
    night = a_night(deployment, "glue-flex", "glue", side_by_side=2)
    done(deployment, night.manifest(0), 10)
    # When: the other two need as long, which is less than the time that is left
    night.wait_until(timedelta(hours=5))
    answer = night.end_of_round(0, seconds=7200, failed=False)
    # Then
    assert answer == {"open": 0, "terminal": 1, "held": 0, "denied": 0, "switched": False}
    # When it is more, Then the runs that have not begun do not wait for spare capacity
    night.wait_until(timedelta(hours=3))
    assert night.end_of_round(0, seconds=7200, failed=False)["switched"]
    assert night.row["switch"]["reason"] == "its runs take longer than planned"


def test_where_every_run_has_begun_nothing_is_left_to_switch(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex", "glue")
    done(deployment, night.manifest(0), 10)
    night.wait_until(timedelta(minutes=35))
    assert not night.end_of_round(0, seconds=7200, failed=False)["switched"]
    assert late_minutes() > 0


def test_a_budget_that_is_too_low_is_told_and_nothing_is_switched(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex", "glue", night_budget_dollars=150)
    night.wait_until(timedelta(hours=1.5))
    assert not night.end_of_round(0, seconds=0)["switched"]
    refused = night.row["refused_switch"]
    assert (refused["engine"], refused["reason"]) == ("glue", "spare capacity did not come")
    assert refused["micro_dollars"] > 150_000_000
    assert "switch" not in night.row
    assert late_minutes() > 0


def test_an_execution_with_one_engine_tells_that_it_is_late(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex")
    assert not night.index[0]["switchable"]
    night.wait_until(timedelta(minutes=30))
    assert not night.end_of_round(0, seconds=0)["switched"]
    assert late_minutes() > 0


def test_a_plan_of_an_earlier_version_is_not_judged(deployment: Deployment) -> None:
    night = a_night(deployment, "glue-flex", "glue")
    deployment.ledger.executions.record("overnight", "plan", {"runs": RUNS, "planned_at": MORNING.isoformat()})
    assert not night.end_of_round(0, seconds=0, stalled=2)["switched"]


def test_progress_that_cannot_be_read_holds_up_no_conversion(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = a_night(deployment, "glue-flex", "glue")

    def denied(*_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "GetItem")

    monkeypatch.setattr(Executions, "get", denied)
    assert night.end_of_round(0, seconds=0, stalled=2) == {**OPEN, "switched": False}
