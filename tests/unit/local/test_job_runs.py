"""Job runs without the emulator: real processes with the rules of Glue and of EMR Serverless.

Their scripts come from a folder that replaces a bucket.
"""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.engines.glue import LIVE_STATES
from local.engines.emr_serverless import EmrRuns
from local.engines.glue import NO_CAPACITY, GlueRuns
from local.errors import ServiceError
from local.isolation import AccessKey
from local.job_launch import JobRuns, JobSettings
from local.limits import Limits
from tests.e2e.waiting import wait_for

HANGING = "import time; time.sleep(600)"


class JobHarness:
    """The job runs of one service."""

    def __init__(self, kind: type[JobRuns], folder: Path, minute_seconds: float = 60.0, **options: Any) -> None:
        self.folder = folder
        (folder / "emulator").mkdir()
        self.limit(Limits())
        self.records: list[dict[str, Any]] = []
        """Records of the runs of a Glue job."""
        self.settings = JobSettings("http://127.0.0.1:9", folder, folder / "classes.jsa", minute_seconds)
        key = AccessKey("ASIAJOB", "secret", "token")
        self.runs: Any = kind(self.settings, lambda *_role: key, self._fetch, **options)

    def limit(self, limits: Limits) -> None:
        limits.write(self.folder)

    def _fetch(self, _key: AccessKey, bucket: str, key: str, target: Path) -> None:
        shutil.copy(self.folder / bucket / key, target)

    def script(self, text: str) -> str:
        """The URI of a new script."""
        (self.folder / "code").mkdir(exist_ok=True)
        name = f"job{len(list((self.folder / 'code').iterdir()))}.py"
        (self.folder / "code" / name).write_text(text)
        return f"s3://code/{name}"

    def log(self, run: str) -> str:
        (file,) = (self.folder / "logs").rglob(f"{run}.log")
        return file.read_text()

    def job(self, script: str, **properties: Any) -> dict[str, Any]:
        """A job of Glue."""
        command = {"Name": properties.pop("kind", "glueetl"), "ScriptLocation": self.script(script)}
        workers = {"WorkerType": "G.1X", "NumberOfWorkers": 2}
        return {"Name": "job", "Role": "role", "Command": command, **workers, **properties}

    def run_to_end(self, job: dict[str, Any], **request: Any) -> dict[str, Any]:
        return reach(self.runs.start(job, request, self.records), "JobRunState", *ENDS)

    def start(self, name: str, **properties: Any) -> dict[str, Any]:
        """Start a run of the job ``name``, which has no other run."""
        return self.runs.start({**self.job(HANGING, **properties), "Name": name}, {}, [])


ENDS = ("STOPPED", "SUCCEEDED", "FAILED", "TIMEOUT", "EXPIRED")


def reach(run: dict[str, Any], key: str, *states: str) -> dict[str, Any]:
    """Wait until the record has one of these states under ``key``."""
    wait_for(f"one of {states}", lambda: run[key] in states)
    return run


@pytest.fixture
def glue(tmp_path):
    harness = JobHarness(GlueRuns, tmp_path)
    yield harness
    harness.runs.close()


HANDLED = "except ZeroDivisionError:\n  traceback.print_exc()\n  raise SystemExit('give a dataset')"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("raise ValueError('no such thing')", "ValueError: no such thing"),
        ("raise SystemExit('give a dataset')", "give a dataset"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (f"import traceback\ntry:\n  1/0\n{HANDLED}", "give a dataset"),
        ("try:\n  1/0\nexcept ZeroDivisionError as e:\n  raise KeyError('x') from e", "KeyError: 'x'"),
        ("import os; os.kill(os.getpid(), 9)", "The process was ended by SIGKILL."),
        ("def f(:", "SyntaxError: "),
    ],
)
def test_failed_run_has_its_reason_in_one_line(glue, script, message):
    run = glue.run_to_end(glue.job(script))
    assert run["JobRunState"] == "FAILED"
    assert run["ErrorMessage"].startswith(message)


def test_a_batch_run_has_the_seconds_of_all_workers_and_a_streaming_run_its_time_only(tmp_path):
    # Given a clock that a run reads when it is requested, when it gets its workers and when it ends
    glue = JobHarness(GlueRuns, tmp_path, clock=itertools.count(1_800_000_000.0, 60.0).__next__)
    # When a run has five workers of two DPUs for the minute between the last two reads
    run = glue.run_to_end(glue.job(""), WorkerType="G.2X", NumberOfWorkers=5)
    # Then it has used ten DPUs for that minute
    assert (run["DPUSeconds"], run["ExecutionTime"]) == (600.0, 60)
    assert run["CompletedOn"] - run["StartedOn"] == 120.0
    assert "DPUSeconds" not in glue.run_to_end(glue.job("", kind="gluestreaming"))


def test_a_run_that_begins_while_the_cloud_ends_has_no_process(glue):
    # Given a cloud whose processes were killed, and an earlier accepted start
    glue.runs.close()
    # When, Then
    run = glue.run_to_end(glue.job(HANGING))
    assert (run["JobRunState"], "the local cloud ends" in run["ErrorMessage"]) == ("FAILED", True)


def test_run_beyond_max_concurrent_runs_is_refused_until_one_has_ended(glue):
    job = glue.job(HANGING, ExecutionProperty={"MaxConcurrentRuns": 2})
    first, _second = (glue.runs.start(job, {}, glue.records) for _ in range(2))
    with pytest.raises(ServiceError, match="Concurrent runs exceeded for job"):
        glue.runs.start(job, {}, glue.records)
    assert glue.runs.stop(first)
    reach(first, "JobRunState", "STOPPED")
    assert glue.runs.start(job, {}, glue.records)["JobRunState"] in LIVE_STATES


@pytest.mark.parametrize(
    ("kind", "of_job", "of_run", "minute_seconds", "state"),
    [
        ("glueetl", {"Timeout": 1}, {}, 0.5, "TIMEOUT"),
        ("glueetl", {"Timeout": 480}, {"Timeout": 1}, 0.5, "TIMEOUT"),
        ("glueetl", {}, {}, 0.5 / 480, "TIMEOUT"),
        ("gluestreaming", {}, {}, 0.5 / (14 * 24 * 60), "EXPIRED"),
    ],
)
def test_run_is_killed_at_the_end_of_its_life(tmp_path, kind, of_job, of_run, minute_seconds, state):
    glue = JobHarness(GlueRuns, tmp_path, minute_seconds)
    run = glue.run_to_end(glue.job(HANGING, kind=kind, **of_job), **of_run)
    assert run["JobRunState"] == state


def test_script_sees_its_deployed_modules_and_not_the_checkout(glue):
    job = glue.job(
        "import helper\nprint(helper.WORD)\nimport lake", DefaultArguments={"--extra-py-files": "s3://code/helper.py"}
    )
    (glue.folder / "code" / "helper.py").write_text("WORD = 'deployed'")
    run = glue.run_to_end(job)
    assert glue.log(run["Id"]).startswith("deployed\n")
    assert run["ErrorMessage"] == "ModuleNotFoundError: No module named 'lake'"


def test_spark_settings_of_the_job_override_the_local_ones(glue):
    run = glue.run_to_end(glue.job("", DefaultArguments={"--conf": "spark.a=1 --conf spark.master=local[1]"}))
    conf = (glue.folder / "runs" / run["Id"] / "spark.conf").read_text().splitlines()
    assert {"spark.a 1", "spark.master local[1]"} <= set(conf)
    assert "spark.master local[2]" not in conf


def test_runs_of_all_jobs_count_until_they_have_ended(glue):
    # Given the maximum number of runs in the account
    glue.limit(Limits(glue_runs=2))
    first, _ = glue.start("stream"), glue.start("batch")
    # When another job starts, then it is refused
    with pytest.raises(ServiceError, match="Max concurrent job runs per account exceeded: 2"):
        glue.start("other")
    # When one has ended, then it starts
    glue.runs.stop(first)
    reach(first, "JobRunState", "STOPPED")
    glue.start("other")


def test_dpus_of_all_workers_count(glue):
    glue.limit(Limits(glue_dpus=10))
    glue.start("stream", NumberOfWorkers=4)
    with pytest.raises(ServiceError, match="Max task DPUs per account exceeded: 10"):
        glue.start("batch", WorkerType="G.1X", NumberOfWorkers=7)
    glue.start("batch", WorkerType="G.2X", NumberOfWorkers=3)


def test_a_flex_run_waits_for_spare_capacity_and_then_fails_without_a_bill(glue):
    # Given an account for which AWS has no spare capacity, and a wait of zero minutes
    glue.limit(Limits(flex_capacity=False, flex_wait_minutes=0))
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
    glue.limit(Limits(flex_capacity=False))
    run = glue.runs.start(glue.job("pass"), {"ExecutionClass": "FLEX"}, glue.records)
    wait_for("the wait", lambda: run["JobRunState"] == "WAITING")
    # When, Then
    glue.limit(Limits())
    reach(run, "JobRunState", "SUCCEEDED")


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
    harness.runs.close()


def request_of(emr: JobHarness, script: str, parameters: str = SMALL, **fields: Any) -> dict[str, Any]:
    driver = {"sparkSubmit": {"entryPoint": emr.script(script), "sparkSubmitParameters": parameters}}
    return {"executionRoleArn": "role", "jobDriver": driver, **fields}


def start(emr: JobHarness, script: str, *states: str, **fields: Any) -> dict[str, Any]:
    return reach(emr.runs.start(APPLICATION, request_of(emr, script, **fields)), "state", *states)


def test_a_run_that_has_ended_has_its_bill(emr: JobHarness) -> None:
    # Given a run that ended by itself, and a run that was cancelled twice
    done, cancelled = start(emr, "", "SUCCESS"), start(emr, HANGING, "RUNNING")
    for _ in range(2):
        emr.runs.stop(cancelled)
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
    # When the token is sent with another request, then it is refused
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
