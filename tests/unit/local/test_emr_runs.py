"""Job runs of EMR Serverless on this machine: states, client tokens, queue and capacity."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from local.errors import ServiceError
from tests.unit.local.emr_harness import HANGING, EmrHarness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def emr(tmp_path: Path) -> Iterator[EmrHarness]:
    harness = EmrHarness(tmp_path)
    yield harness
    harness.processes.kill_all()


def test_a_run_knows_itself_and_works_as_its_own_role(emr: EmrHarness) -> None:
    # Given a script that tells what it sees
    seen = emr.folder / "seen.json"
    script = f"import json, os, sys\nopen({str(seen)!r}, 'w').write(json.dumps([sys.argv[1:], dict(os.environ)]))"
    # When
    run = emr.reach(emr.start(script), "SUCCESS")
    # Then
    arguments, environment = json.loads(seen.read_text())
    assert arguments == ["--run", "x"]
    assert environment["SERVERLESS_EMR_JOB_ID"] == run["jobRunId"]
    assert environment["SERVERLESS_EMR_VIRTUAL_CLUSTER_ID"] == "00app"
    assert "AWS_REGION" not in environment
    assert emr.services == ["emr-serverless.amazonaws.com"]


def test_a_run_that_has_ended_has_its_bill(emr: EmrHarness) -> None:
    # Given runs that ended by themselves and by a request, and one that never got workers
    done = emr.reach(emr.start(""), "SUCCESS")
    cancelled = emr.reach(emr.start(HANGING), "RUNNING")
    emr.runs.cancel(cancelled)
    emr.application["maximumCapacity"] = {"cpu": "1 vCPU", "memory": "1 GB"}
    without = emr.reach(emr.start(""), "FAILED")
    # Then those that had workers, 2 vCPUs and 4 GB, are billed for their time
    for run in (done, emr.reach(cancelled, "CANCELLED")):
        billed = run["billedResourceUtilization"]
        assert billed["vCPUHour"] == pytest.approx(2 * (run["endedAt"] - run["startedAt"]) / 3600)
        assert billed["memoryGBHour"] == pytest.approx(2 * billed["vCPUHour"])
    assert "billedResourceUtilization" not in without


def test_the_event_logs_of_a_run_are_stored_below_its_place(emr: EmrHarness) -> None:
    # Given a request that stores logs in S3, and a run that writes an event log as Spark does
    monitoring = {"s3MonitoringConfiguration": {"logUri": "s3://control/spark-logs/"}}
    script = "open('event-logs/one', 'w').write('x')"
    # When
    run = emr.reach(emr.start(script, configurationOverrides={"monitoringConfiguration": monitoring}), "SUCCESS")
    # Then
    place = f"spark-logs/applications/00app/jobs/{run['jobRunId']}/sparklogs/one"
    assert (emr.folder / "control" / place).read_text() == "x"


def test_a_failed_run_tells_its_exception(emr: EmrHarness) -> None:
    run = emr.reach(emr.start("raise ValueError('no such column')"), "FAILED")
    assert "ExitCode: 1" in run["stateDetails"]
    assert "ValueError: no such column" in run["stateDetails"]


def test_a_repeated_request_finds_the_run_of_the_first_one(emr: EmrHarness) -> None:
    # Given a request whose answer was lost
    request = emr.request(HANGING, clientToken="round-0")
    run = emr.runs.start(emr.application, request)
    # When it is repeated, then there is still one run; and another one for another token
    assert emr.runs.start(emr.application, dict(request)) is run
    assert emr.runs.start(emr.application, {**request, "clientToken": "round-1"}) is not run
    assert len(emr.runs.of("00app")) == 2
    # When the token comes with another request, then it is refused
    with pytest.raises(ServiceError, match="round-0") as refused:
        emr.runs.start(emr.application, {**request, "name": "other"})
    assert refused.value.code == "ConflictException"


def test_a_cancelled_run_ends_with_all_of_its_processes(emr: EmrHarness) -> None:
    run = emr.reach(emr.start(HANGING), "RUNNING")
    emr.runs.cancel(run)
    emr.reach(run, "CANCELLED")
    # Then cancelling again changes nothing
    emr.runs.cancel(run)
    assert run["state"] == "CANCELLED"


def test_a_run_is_cancelled_at_its_timeout(emr: EmrHarness) -> None:
    run = emr.reach(emr.start(HANGING, executionTimeoutMinutes=1), "CANCELLED")
    assert "execution timeout of 1 minutes" in run["stateDetails"]


def test_runs_wait_in_the_queue_until_others_have_ended(emr: EmrHarness) -> None:
    # Given an application for one run at a time
    emr.application["schedulerConfiguration"] = {"maxConcurrentRuns": 1, "queueTimeoutMinutes": 720}
    first, second = emr.reach(emr.start(HANGING), "RUNNING"), emr.start("")
    emr.reach(second, "QUEUED")
    # When the first one ends, then the second one begins
    emr.runs.cancel(first)
    emr.reach(second, "SUCCESS")


@pytest.mark.parametrize(("cpu", "memory"), [("3 vCPU", "100 GB"), ("100 vCPU", "7 GB")])
def test_all_workers_of_all_runs_fit_the_maximum_capacity(emr: EmrHarness, cpu: str, memory: str) -> None:
    # Given room for one run, and no queue
    emr.application["maximumCapacity"] = {"cpu": cpu, "memory": memory}
    emr.reach(emr.start(HANGING), "RUNNING")
    # When another one starts, then it fails
    run = emr.reach(emr.start(HANGING), "FAILED")
    assert "exceeded maximumCapacity" in run["stateDetails"]


def test_a_run_does_not_wait_for_ever(emr: EmrHarness) -> None:
    emr.application["schedulerConfiguration"] = {"maxConcurrentRuns": 1, "queueTimeoutMinutes": 1}
    emr.reach(emr.start(HANGING), "RUNNING")
    run = emr.reach(emr.start(HANGING), "FAILED")
    assert "1 minutes in the queue" in run["stateDetails"]


def test_a_run_can_be_cancelled_in_the_queue(emr: EmrHarness) -> None:
    emr.application["schedulerConfiguration"] = {"maxConcurrentRuns": 1}
    emr.reach(emr.start(HANGING), "RUNNING")
    run = emr.reach(emr.start(HANGING), "QUEUED")
    emr.runs.cancel(run)
    emr.reach(run, "CANCELLED")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("--conf spark.master=local[2]", "'spark.master' is not supported"),
        ("--jars s3://code/a.jar", "'--jars' is not supported"),
        ("--conf", "'--conf' is not supported"),
        ("--conf spark.driver.cores=3", "no worker with 3 vCPU and 14 GB for the driver"),
        ("--conf spark.executor.memory=40g", "no worker with 4 vCPU and 40 GB for the executor"),
    ],
)
def test_what_the_service_would_refuse_is_refused(emr: EmrHarness, parameters: str, message: str) -> None:
    with pytest.raises(ServiceError, match=message) as refused:
        emr.runs.start(emr.application, emr.request("", parameters))
    assert refused.value.code == "ValidationException"
    assert emr.runs.of("00app") == []
