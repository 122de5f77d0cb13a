"""The streaming jobs on EMR Serverless: one run of a shard at a time, started, listed and ended by its API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from lake.engines.emr_serverless import START_SETTLES, live_runs, run_id
from lake.ledger import State
from lake.manifest import Lane
from router.executions.run_status import release_unheld
from router.stream.runs import stream_runs
from tests.unit.router.emr import APPLICATION, ON_EMR, FakeEmr, emr_error
from tests.unit.router.stream_actions import act

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def begin(deployment: Deployment, emr: FakeEmr) -> str:
    """The newest run works, as its driver says; its id in the ledger."""
    run = list(emr.runs.values())[-1]
    run["state"] = "RUNNING"
    deployment.ledger.stream.begin_run(run_id(APPLICATION, run["id"]), deployment.now)
    return run_id(APPLICATION, run["id"])


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
    # And Glue was not asked for anything
    assert deployment.glue.runs == {}


@pytest.mark.parametrize("state", ["SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING"])
def test_a_run_is_alive_until_it_has_ended(deployment: Deployment, emr: FakeEmr, state: str) -> None:
    act(deployment, "start")
    (run,) = emr.runs.values()
    run["state"] = state
    deployment.wait(2 * START_SETTLES)
    assert act(deployment, "watch")["running"]
    assert len(emr.runs) == 1


def test_a_kill_cancels_the_run_at_once(deployment: Deployment, emr: FakeEmr) -> None:
    act(deployment, "start")
    assert act(deployment, "kill")["killed"] == 1
    (request,) = emr.cancelled
    assert request == {"applicationId": APPLICATION, "jobRunId": "00run1", "shutdownGracePeriodInSeconds": 0}
    assert act(deployment, "kill")["killed"] == 0


def test_a_run_that_ends_while_it_is_killed_is_left_as_it_is(deployment: Deployment, emr: FakeEmr) -> None:
    act(deployment, "start")
    runs = stream_runs(deployment.services, "1")
    live = runs.live()
    emr.end("SUCCESS")
    runs.end(live)
    assert emr.states() == ["SUCCESS"]


def test_a_run_that_cannot_be_killed_is_an_error(
    deployment: Deployment, emr: FakeEmr, monkeypatch: pytest.MonkeyPatch
) -> None:
    act(deployment, "start")

    def refuse(**_: Any) -> None:
        raise emr_error("ValidationException", "CancelJobRun")

    monkeypatch.setattr(emr, "cancel_job_run", refuse)
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
    # And a batch run of the name is not taken for one
    emr.runs["00other"] = {"id": "00other", "name": "stream-job", "mode": "BATCH", "state": "RUNNING"}
    assert len(live_runs(emr, APPLICATION, "stream-job")) == 1


def test_manifests_of_a_streaming_run_that_has_ended_are_released(
    deployment: Deployment, emr: FakeEmr, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a manifest that a streaming run holds, and one that a run on Glue held before the engine was changed: no
    # role may ask for its job any more
    def refuse(**_: Any) -> None:
        raise emr_error("AccessDeniedException", "GetJobRun")

    monkeypatch.setattr(deployment.glue, "get_job_run", refuse)
    act(deployment, "start")
    holder = begin(deployment, emr)
    rows = [
        deployment.claimed(deployment.queued(f"{run}.json", lane=Lane.STREAM), run).row for run in (holder, "jr_before")
    ]
    assert release_unheld(deployment.services, rows) == []
    # When the run has failed, then its manifest is released, and the other one waits for its lease
    emr.end("FAILED")
    assert [row.id for row in release_unheld(deployment.services, rows)] == [rows[0].id]
    assert deployment.row(rows[1].id).state == State.RUNNING
