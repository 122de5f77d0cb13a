"""The account's quotas of Glue hold for the runs of all jobs together."""

from __future__ import annotations

import pytest

from local.errors import ConcurrentRunsExceededError, ResourceNumberLimitExceededError
from local.glue_runs import NO_CAPACITY
from local.limits import Limits
from tests.e2e.waiting import wait_for
from tests.unit.local.glue_harness import GlueHarness

HANGING = "import time; time.sleep(600)"


@pytest.fixture
def glue(tmp_path):
    harness = GlueHarness(tmp_path)
    yield harness
    harness.processes.kill_all()


def start(glue, name, **properties):
    """Start a run of the job ``name``, which has no other run."""
    return glue.runs.start({**glue.job(HANGING, **properties), "Name": name}, {}, [])


def test_runs_of_all_jobs_count_until_they_have_ended(glue):
    # Given as many runs as the account may have
    glue.limits = Limits(glue_runs=2)
    first, _ = start(glue, "stream"), start(glue, "batch")
    # When another job starts, then it is refused
    with pytest.raises(ResourceNumberLimitExceededError, match="Max concurrent job runs per account exceeded: 2"):
        start(glue, "other")
    # When one has ended, then it starts
    glue.runs.stop(first)
    glue.wait_for_end(first)
    start(glue, "other")


@pytest.mark.parametrize(
    ("properties", "fits"),
    [
        ({"WorkerType": "G.1X", "NumberOfWorkers": 6}, True),
        ({"WorkerType": "G.1X", "NumberOfWorkers": 7}, False),
        ({"WorkerType": "G.2X", "NumberOfWorkers": 3}, True),
        ({"WorkerType": "G.025X", "NumberOfWorkers": 24}, True),
        ({"WorkerType": "G.025X", "NumberOfWorkers": 25}, False),
        ({"MaxCapacity": 6.0}, True),
        ({"MaxCapacity": 6.5}, False),
    ],
)
def test_dpus_of_all_workers_count(glue, properties, fits):
    glue.limits = Limits(glue_dpus=10)
    start(glue, "stream", NumberOfWorkers=4)
    if fits:
        start(glue, "batch", **properties)
    else:
        with pytest.raises(ResourceNumberLimitExceededError, match="Max task DPUs per account exceeded: 10"):
            start(glue, "batch", **properties)


def test_a_refused_run_uses_nothing_up(glue):
    glue.limits = Limits(glue_dpus=10)
    with pytest.raises(ResourceNumberLimitExceededError):
        start(glue, "batch", NumberOfWorkers=11)
    start(glue, "batch", NumberOfWorkers=10)
    assert glue.records == []


def test_the_limit_of_the_job_is_told_before_that_of_the_account(glue):
    glue.limits = Limits(glue_runs=1)
    job = glue.job(HANGING)
    glue.runs.start(job, {}, glue.records)
    with pytest.raises(ConcurrentRunsExceededError):
        glue.runs.start(job, {}, glue.records)


def test_a_flex_run_waits_for_spare_capacity_and_then_fails_without_a_bill(glue):
    # Given an account for which AWS has no spare capacity, and a wait of no time
    glue.limits = Limits(flex_capacity=False, flex_wait_minutes=0)
    job = glue.job(HANGING)
    # When
    run = glue.run_to_end(job, ExecutionClass="FLEX")
    # Then
    assert (run["JobRunState"], run["ErrorMessage"]) == ("FAILED", NO_CAPACITY)
    assert (run["ExecutionTime"], run["DPUSeconds"]) == (0, 0)
    # And the standard class does not wait
    standard = glue.runs.start(job, {"ExecutionClass": "STANDARD"}, [])
    wait_for("the standard run", lambda: standard["JobRunState"] == "RUNNING")


def test_a_waiting_flex_run_begins_when_there_is_capacity(glue):
    # Given
    glue.limits = Limits(flex_capacity=False)
    run = glue.runs.start(glue.job("pass"), {"ExecutionClass": "FLEX"}, glue.records)
    wait_for("the wait", lambda: run["JobRunState"] == "WAITING")
    # When, Then
    glue.limits = Limits()
    assert glue.wait_for_end(run)["JobRunState"] == "SUCCEEDED"


def test_limits_can_be_replaced_while_they_are_read(tmp_path):
    file = tmp_path / "limits.json"
    for limits in (Limits(), Limits(glue_runs=0, glue_dpus=2.5)):
        limits.write(file)
        assert Limits.read(file) == limits
