"""Job runs of EMR Serverless on this machine: states, client tokens, bills."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.engines.emr_serverless import EmrRuns
from local.errors import ServiceError
from tests.unit.local.job_harness import HANGING, JobHarness, reach

SMALL = "--conf spark.driver.cores=1 --conf spark.driver.memory=2g --conf spark.executor.cores=1 "
SMALL += "--conf spark.executor.memory=1g --conf spark.executor.memoryOverhead=1g "
SMALL += "--conf spark.dynamicAllocation.maxExecutors=1"
"""A run of 2 vCPUs and 4 GB."""
APPLICATION = {
    "applicationId": "00app",
    "arn": "arn:aws:emr-serverless:eu-central-1:111122223333:/applications/00app",
    "name": "batch",
    "releaseLabel": "emr-spark-8.1.0",
}


@pytest.fixture
def emr(tmp_path: Path) -> Iterator[JobHarness]:
    harness = JobHarness(EmrRuns, tmp_path, minute_seconds=0.5)
    yield harness
    harness.processes.kill_all()


def request_of(emr: JobHarness, script: str, parameters: str = SMALL, **fields: Any) -> dict[str, Any]:
    driver = {"sparkSubmit": {"entryPoint": emr.script(script), "sparkSubmitParameters": parameters}}
    return {"executionRoleArn": "role", "jobDriver": driver, **fields}


def start(emr: JobHarness, script: str, *states: str, **fields: Any) -> dict[str, Any]:
    return reach(emr.runs.start(APPLICATION, request_of(emr, script, **fields)), "state", *states)


def test_a_run_that_has_ended_has_its_bill(emr: JobHarness) -> None:
    # Given a run that ended by itself, and one that was cancelled, twice
    done, cancelled = start(emr, "", "SUCCESS"), start(emr, HANGING, "RUNNING")
    for _ in range(2):
        emr.runs.cancel(cancelled)
        reach(cancelled, "state", "CANCELLED")
    # Then their 2 vCPUs and 4 GB are billed for their time
    for run in (done, cancelled):
        billed = run["billedResourceUtilization"]
        assert billed["vCPUHour"] == pytest.approx(2 * (run["endedAt"] - run["startedAt"]) / 3600)
        assert billed["memoryGBHour"] == pytest.approx(2 * billed["vCPUHour"])


def test_a_repeated_request_finds_the_run_of_the_first_one(emr: JobHarness) -> None:
    # Given a request whose answer was lost
    request = request_of(emr, HANGING, clientToken="round-0")
    run = emr.runs.start(APPLICATION, request)
    # When it is repeated, then there is still one run; and another one for another token
    assert emr.runs.start(APPLICATION, dict(request)) is run
    assert emr.runs.start(APPLICATION, {**request, "clientToken": "round-1"}) is not run
    assert len(emr.runs.of("00app")) == 2
    # When the token comes with another request, then it is refused
    with pytest.raises(ServiceError, match="round-0") as refused:
        emr.runs.start(APPLICATION, {**request, "name": "other"})
    assert refused.value.code == "ConflictException"


def test_a_run_is_cancelled_at_its_timeout(emr: JobHarness) -> None:
    run = start(emr, HANGING, "CANCELLED", executionTimeoutMinutes=1)
    assert run["stateDetails"] == "The run was ended after 1 minutes."


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("--conf spark.master=local[2]", "'spark.master' is not supported"),
        ("--jars s3://code/a.jar", "'--jars' is not supported"),
        ("--conf spark.driver.cores=3", "no worker with 3 vCPU and 14 GB for the driver"),
        ("--conf spark.executor.memory=40g", "no worker with 4 vCPU and 40 GB for the executor"),
    ],
)
def test_what_the_service_would_refuse_is_refused(emr: JobHarness, parameters: str, message: str) -> None:
    with pytest.raises(ServiceError, match=message) as refused:
        emr.runs.start(APPLICATION, request_of(emr, "", parameters))
    assert refused.value.code == "ValidationException"
    assert emr.runs.of("00app") == []
