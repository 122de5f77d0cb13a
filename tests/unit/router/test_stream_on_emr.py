"""The streaming jobs on EMR Serverless: one run of a shard at a time, started, listed and ended by its API."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.engines.emr_serverless import START_SETTLES, run_id
from lake.errors import TransientError
from lake.ledger import State
from lake.manifest import Lane
from router.executions.run_status import release_unheld
from router.stream.handler import stream_control
from router.stream.runs import ensure_running, stream_runs
from tests.unit.router.conftest import Deployment, act
from tests.unit.router.emr import APPLICATION, LAUNCH, ON_EMR, FakeEmr, emr_error


def test_a_window_starts_one_streaming_run_without_retries(deployment: Deployment, emr: FakeEmr) -> None:
    # When a window begins twice
    for _ in range(2):
        assert act(deployment, "start")["running"]
    # Then there is one run, for which the service makes no second attempt
    assert emr.states() == ["SUBMITTED"]
    (request,) = emr.requests
    assert (request["mode"], request["retryPolicy"]) == ("STREAMING", {"maxFailedAttemptsPerHour": 1})
    assert (request["name"], request["executionTimeoutMinutes"]) == ("stream-job", 1440)
    assert request["jobDriver"]["sparkSubmit"]["entryPointArguments"][-2:] == ["--region", "eu-central-1"]
    # And Glue was not called
    assert deployment.glue.runs == {}


@pytest.mark.parametrize("state", ["QUEUED", "CANCELLING"])
def test_a_run_is_alive_until_it_has_ended(deployment: Deployment, emr: FakeEmr, state: str) -> None:
    act(deployment, "start")
    (run,) = emr.runs.values()
    run["state"] = state
    deployment.wait(2 * START_SETTLES)
    assert act(deployment, "watch")["running"]
    assert len(emr.runs) == 1


def test_a_kill_cancels_the_run_at_once(deployment: Deployment, emr: FakeEmr) -> None:
    act(deployment, "start")
    runs = stream_runs(deployment.services, "1")
    live = runs.live()
    assert act(deployment, "kill")["killed"] == 1
    assert emr.cancelled == [{"applicationId": APPLICATION, "jobRunId": "00run1", "shutdownGracePeriodInSeconds": 0}]
    assert act(deployment, "kill")["killed"] == 0
    # And a run that has ended since it was listed is left unchanged
    runs.end(live)
    assert emr.states() == ["CANCELLED"]


def test_a_run_that_cannot_be_killed_is_an_error(deployment: Deployment, emr: FakeEmr) -> None:
    act(deployment, "start")

    deployment.patch.setattr(emr, "cancel_job_run", Mock(side_effect=emr_error("ValidationException", "CancelJobRun")))
    with pytest.raises(ClientError, match="ValidationException"):
        act(deployment, "kill")


def test_the_run_of_a_shard_has_its_name_and_its_argument(deployment: Deployment, emr: FakeEmr) -> None:
    # Given three shards, and a list with one run on each page
    emr.page_size = 1
    deployment.configure(stream={**ON_EMR, "jobs": 3})
    assert act(deployment, "start")["running"]
    # Then each has its run
    names = {run["name"]: run["id"] for run in emr.runs.values()}
    assert set(names) == {"stream-job", "stream-job-2", "stream-job-3"}
    for shard, job in (("1", "stream-job"), ("2", "stream-job-2"), ("3", "stream-job-3")):
        assert stream_runs(deployment.services, shard).live() == [run_id(APPLICATION, names[job])]
    arguments = [request["jobDriver"]["sparkSubmit"]["entryPointArguments"] for request in emr.requests]
    shards = [words[words.index("--stream_shard") + 1] if "--stream_shard" in words else "1" for words in arguments]
    assert sorted(shards) == ["1", "2", "3"]
    # And the reason of its end is found, whatever page has it
    emr.end("FAILED")
    ledger = deployment.ledger.stream
    reasons = [stream_runs(deployment.services, shard).end_cause(ledger.of(shard).get()) for shard in ("1", "2", "3")]
    assert reasons == ["FAILED, without a reason"] * 3
    # And a batch run of that name is not mistaken for it
    emr.runs["00other"] = {"id": "00other", "name": "stream-job", "mode": "BATCH", "state": "RUNNING"}
    assert stream_runs(deployment.services, "1").live() == []


def test_manifests_of_a_streaming_run_that_has_ended_are_released(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a manifest that a streaming run holds, and one that a run on Glue held before the engine was changed: no
    # role may query its job any more
    deployment.patch.setattr(
        deployment.glue, "get_job_run", Mock(side_effect=emr_error("AccessDeniedException", "GetJobRun"))
    )
    act(deployment, "start")
    (run,) = emr.runs.values()
    run["state"], holder = "RUNNING", run_id(APPLICATION, run["id"])
    rows = [
        deployment.claimed(deployment.queued(f"{run}.json", lane=Lane.STREAM), run) for run in (holder, "jr_before")
    ]
    assert release_unheld(deployment.services, rows) == []
    # When the run has failed, then its manifest is released, and the other one waits for its lease
    emr.end("FAILED")
    assert [row.id for row in release_unheld(deployment.services, rows)] == [rows[0].id]
    assert deployment.row(rows[1].id).state == State.RUNNING


def start(deployment: Deployment) -> str | None:
    """Start a run of the first shard, as each caller does."""
    return stream_runs(deployment.services, "1").start("1", deployment.ledger.stream.get(), deployment.now)


def test_callers_at_the_same_time_start_one_run(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a run that has just been started, and a list that does not have it yet
    assert start(deployment)
    emr.unlisted.update(emr.runs)
    deployment.wait(START_SETTLES - timedelta(seconds=1))
    # When another caller starts one, then it repeats the request of the first caller
    start(deployment)
    assert len(emr.runs) == 1
    assert emr.requests[0] == emr.requests[1]


def test_a_run_that_has_failed_before_it_began_is_replaced_after_a_minute(deployment: Deployment, emr: FakeEmr) -> None:
    act(deployment, "start")
    emr.end("FAILED")
    # When it is watched at once, then the start is still the same
    act(deployment, "watch")
    assert emr.states() == ["FAILED"]
    # When the minute is over
    deployment.wait(START_SETTLES)
    act(deployment, "watch")
    assert emr.states() == ["FAILED", "SUBMITTED"]


def test_a_start_whose_answer_was_lost_is_repeated(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a run that only the service knows and that its list does not have yet
    assert start(deployment)
    emr.unlisted.update(emr.runs)
    # When a window begins, and then a person starts the stream at once
    act(deployment, "start")
    assert stream_control({"action": "start", "manual": True}, deployment.services)["running"]
    # Then it is the only run
    assert len(emr.runs) == 1


def test_a_run_that_ended_unnoticed_does_not_prevent_another_one(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a run that only the service knows and that failed before it began
    start(deployment)
    emr.end("FAILED")
    deployment.wait(START_SETTLES)
    # When
    for action in ("start", "watch"):
        act(deployment, action)
        deployment.wait(START_SETTLES)
    # Then
    assert emr.states() == ["FAILED", "SUBMITTED"]


def test_another_deployment_starts_its_own_run(deployment: Deployment, emr: FakeEmr) -> None:
    # Given a run that failed at once and whose start was not recorded
    start(deployment)
    emr.end("FAILED")
    # When
    newer = replace(LAUNCH, entry_point="s3://code/newer.py")
    deployment.services = replace(deployment.services, stream_launch=newer)
    # Then the request, which differs, has another client token
    assert ensure_running(deployment.services, ["1"]) == {}
    assert emr.states() == ["FAILED", "SUBMITTED"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDeniedException", pytest.raises(ClientError, match="AccessDeniedException")),
        # The answer for an application that is stopping.
        ("ValidationException", pytest.raises(TransientError, match="cannot start the streaming job stream-job now")),
        ("ConflictException", pytest.raises(TransientError, match="cannot start the streaming job stream-job now")),
    ],
)
def test_a_start_that_is_refused_is_an_error(deployment: Deployment, emr: FakeEmr, code: str, expected: Any) -> None:
    deployment.patch.setattr(emr, "start_job_run", Mock(side_effect=emr_error(code)))
    errors = ensure_running(deployment.services, ["1"])
    with expected:
        raise errors["1"]
