"""Streaming runs of EMR Serverless on this machine: attempts, lists, and what a cancellation may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from local.errors import ServiceError
from tests.unit.local.emr_harness import HANGING, EmrHarness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAILING = "import sys; sys.exit(3)"


@pytest.fixture
def emr(tmp_path: Path) -> Iterator[EmrHarness]:
    harness = EmrHarness(tmp_path)
    yield harness
    harness.processes.kill_all()


def streaming(emr: EmrHarness, script: str, **policy: int) -> dict[str, Any]:
    return emr.start(script, mode="STREAMING", **({"retryPolicy": policy} if policy else {}))


def test_a_streaming_run_is_tried_again_unless_its_policy_allows_one_failure(emr: EmrHarness) -> None:
    # Given a run without retries, and one with the default of the service
    once, five = streaming(emr, FAILING, maxFailedAttemptsPerHour=1), streaming(emr, FAILING)
    # When they fail, then each attempt has its own log
    assert emr.reach(once, "FAILED")["attempt"] == 1
    assert emr.reach(five, "FAILED")["attempt"] == 5
    logs = {path.stem for path in (emr.folder / "logs" / "batch").iterdir()}
    attempts = {f"{five['jobRunId']}-attempt-{number}" for number in range(2, 6)}
    assert logs == {once["jobRunId"], five["jobRunId"], *attempts}
    # And a batch run is not tried again
    assert emr.reach(emr.start(FAILING), "FAILED")["attempt"] == 1


@pytest.mark.parametrize("attempts", [0, 11])
def test_a_retry_policy_beyond_its_limits_is_refused(emr: EmrHarness, attempts: int) -> None:
    with pytest.raises(ServiceError, match="from 1 to 10"):
        streaming(emr, "", maxFailedAttemptsPerHour=attempts)


def test_the_event_logs_of_a_streaming_run_are_below_its_attempt(emr: EmrHarness) -> None:
    monitoring = {"s3MonitoringConfiguration": {"logUri": "s3://control/spark-logs/"}}
    script = "open('event-logs/one', 'w').write('x')"
    overrides = {"monitoringConfiguration": monitoring}
    run = emr.reach(emr.start(script, mode="STREAMING", configurationOverrides=overrides), "SUCCESS")
    place = f"spark-logs/applications/00app/jobs/{run['jobRunId']}/attempts/1/sparklogs/one"
    assert (emr.folder / "control" / place).read_text() == "x"


def test_runs_are_listed_by_state_and_mode(emr: EmrHarness) -> None:
    ended = emr.reach(emr.start(""), "SUCCESS")
    alive = emr.reach(streaming(emr, HANGING), "RUNNING")
    assert emr.runs.of("00app") == [alive, ended]
    assert emr.runs.of("00app", ["RUNNING", "QUEUED"]) == [alive]
    assert emr.runs.of("00app", mode="BATCH") == [ended]
    assert emr.runs.of("00app", ["SUCCESS"], "STREAMING") == []


@pytest.mark.parametrize("seconds", [-1, 1, 14, 1801])
def test_a_grace_period_that_is_not_valid_is_refused(emr: EmrHarness, seconds: int) -> None:
    run = emr.reach(streaming(emr, HANGING), "RUNNING")
    with pytest.raises(ServiceError, match="shutdownGracePeriodInSeconds"):
        emr.runs.cancel(run, seconds)
    assert run["state"] == "RUNNING"
