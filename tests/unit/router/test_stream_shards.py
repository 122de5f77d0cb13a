"""The control plane with several streaming jobs: each has its inbox, row, window, backlog and starts."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any
from unittest.mock import patch

import pytest

from lake.errors import TransientError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Partition
from router.executions.run_status import release_unheld
from router.ownership.owner import write_pointer
from router.requests.promote import promote
from router.route.decide_lane import decide_lanes
from router.route.handler import route
from router.stream.runs import ensure_running
from router.sweep.handler import sweep
from router.sweep.manifests import renew_pointers
from router.sweep.repair import Repair
from router.telemetry import Metric, metrics
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment, act, measure_speed
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import owned

JOBS = {"1": "stream-job", "2": "stream-job-2", "3": "stream-job-3"}
"""Glue jobs by shard."""


def running(deployment: Deployment) -> set[str]:
    """Shards with a run."""
    return {shard for shard, job in JOBS.items() if "RUNNING" in deployment.glue.runs.get(job, {}).values()}


def waits(deployment: Deployment, shard: str, partition: Partition = PARTITION) -> ManifestRow:
    """Create a manifest of the stream lane for this shard, without a pointer."""
    shards = deployment.services.settings.shards
    while True:
        # Most ids belong to other shards: only the matching one is queued.
        manifest = deployment.manifest("a.json", lane=Lane.STREAM, partition=partition)
        if shards.of(manifest.id) == shard:
            return deployment.enqueued(manifest)


@pytest.fixture(autouse=True)
def _shards(deployment: Deployment) -> None:
    """The three jobs; the latency goal of each is 4 seconds of 4 cores."""
    deployment.configure(stream={"jobs": 3, "latency_goal_seconds": 4, "max_workers": 2})


def end_runs(deployment: Deployment, *shards: str) -> None:
    for shard in shards:
        deployment.glue.runs[JOBS[shard]] = dict.fromkeys(deployment.glue.runs[JOBS[shard]], "SUCCEEDED")


def test_all_shards_share_a_window_and_each_ends_by_itself(deployment: Deployment) -> None:
    # When it opens, Then each has a run and a row
    assert act(deployment, "start") == {"running": True, "windowOver": False}
    assert running(deployment) == set(JOBS)
    windows = {deployment.ledger.stream.of(shard).get().window_until for shard in JOBS}
    assert windows == {"2026-11-20T19:15:00.000+00:00"}
    for shard in JOBS:
        deployment.ledger.stream.of(shard).begin_run("jr", deployment.now)
    # When it ends, and one of them at once
    assert act(deployment, "stop")["stopping"] == {"1": ["jr_1"], "2": ["jr_2"], "3": ["jr_3"]}
    end_runs(deployment, "2")
    waits(deployment, "2")
    # And there is no room for its remaining work, for which the sweep then starts a run
    deployment.glue.quota_is_full = True
    assert act(deployment, "stop", {"2": []}) == {"running": False, "windowOver": True, "stopped": True, "stopping": {}}
    deployment.glue.quota_is_full = False
    answer = act(deployment, "stop", {"1": [], "2": [], "3": []})
    assert (answer["stopped"], answer["stopping"]) == (False, {"1": ["jr_1"], "3": ["jr_3"]})
    # Then its remaining work has a new run, which no later round asks to end
    assert running(deployment) == set(JOBS)
    end_runs(deployment, "1")
    again = act(deployment, "stop", answer["stopping"])
    assert (again["running"], again["stopped"], again["stopping"]) == (True, False, {"3": ["jr_3"]})
    assert act(deployment, "stop", {"2": ["jr_2"]})["stopping"] == {}
    assert not deployment.ledger.stream.of("2").get().stop_requested
    # And only a run that did not end in time is killed
    assert act(deployment, "kill", {"2": ["jr_2"], "3": ["jr_3"]})["killed"] == 1
    assert running(deployment) == {"2"}


def test_a_shard_that_was_removed_meanwhile_gets_no_request(deployment: Deployment) -> None:
    act(deployment, "start")
    deployment.configure()
    assert act(deployment, "stop", {"2": [], "3": []}) == {
        "running": False,
        "windowOver": True,
        "stopped": True,
        "stopping": {},
    }


def test_outside_the_window_only_the_shard_with_work_gets_a_run(deployment: Deployment) -> None:
    assert act(deployment, "watch")["windowOver"]
    assert running(deployment) == set()
    waits(deployment, "3")
    act(deployment, "watch")
    assert running(deployment) == {"3"}


def test_a_shard_that_cannot_start_does_not_keep_the_others_from_their_watch(deployment: Deployment) -> None:
    # Given no room for a run of the first shard, and a backlog of the last one
    act(deployment, "start")
    deployment.ledger.stream.begin_run("jr_1", deployment.now)
    end_runs(deployment, "1")
    deployment.glue.quota_is_full = True
    measure_speed(deployment, 10)
    for _ in range(2):
        waits(deployment, "3")
    # When, Then
    with pytest.raises(TransientError, match="no room to start the streaming job stream-job "):
        act(deployment, "watch")
    assert deployment.ledger.stream.of("3").get().spilling


def test_the_latency_goal_applies_to_each_shard(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    # Given as much work for one shard as its four cores convert in eight seconds instead of four
    measure_speed(deployment, 10)
    for _ in range(4):
        waits(deployment, "3")
    waits(deployment, "2")
    # When
    answer = act(deployment, "watch")
    # Then peak files spill, because any of them could go to that shard; urgent files do not
    assert (answer["spilling"], answer["backlogBytes"]) == (True, 500)
    files = [file_of("orders/a.json"), file_of("orders/urgent/a.json")]
    decisions = decide_lanes(deployment.services, files, deployment.now)
    assert [decisions[file].lane for file in files] == ["batch", "stream"]  # type: ignore[union-attr]


def test_the_worst_shards_decide_the_health_of_the_lane(deployment: Deployment) -> None:
    # Given a window, one run that works, and an older manifest of another shard
    act(deployment, "start")
    waits(deployment, "3")
    deployment.wait(timedelta(minutes=6))
    waits(deployment, "2")
    deployment.wait(timedelta(minutes=2))
    deployment.ledger.stream.of("2").record_heartbeat("jr_2", deployment.now)
    # When, Then
    sweep(deployment.services)
    measured = [metrics.metric_set[name]["Value"] for name in (Metric.STREAM_OLDEST_MINUTES, Metric.STREAM_SILENT)]
    assert measured == [[8], [2]]


def test_what_a_run_of_another_shard_has_taken_is_released_when_that_run_has_ended(deployment: Deployment) -> None:
    # Given a manifest of the second shard, whose pointer the first one has read, before its run ended
    deployment.glue.runs["stream-job"] = {"jr_1": "RUNNING"}
    row = deployment.claimed(waits(deployment, "2"), "jr_1")
    assert release_unheld(deployment.services, [row]) == []
    deployment.glue.runs["stream-job"] = {"jr_1": "FAILED"}
    # When, Then
    assert release_unheld(deployment.services, [row]) == [row]
    # And the shard's own job is asked first: each of 20 jobs holds manifests, and every sweep queries each of them
    deployment.glue.runs["stream-job-2"] = {"jr_2": "RUNNING"}
    with patch.object(deployment.glue, "get_job_run", wraps=deployment.glue.get_job_run) as lookups:
        assert release_unheld(deployment.services, [deployment.claimed(waits(deployment, "2"), "jr_2")]) == []
    assert lookups.call_count == 1


def test_an_engine_that_does_not_answer_is_awaited_once_for_all_shards(deployment: Deployment) -> None:
    # Given a Glue that answers only after all shards have sent their request
    barrier, start = Barrier(len(JOBS), timeout=10), deployment.glue.start_job_run

    def start_slowly(**request: str) -> Any:
        barrier.wait()
        return start(**request)

    services = replace(deployment.services, glue=deployment.glue)
    with patch.object(deployment.glue, "start_job_run", start_slowly):
        # When a function starts all of them, Then none waits for the answer of another
        assert ensure_running(services, list(JOBS)) == {}
    assert running(deployment) == set(JOBS)


def test_only_the_events_of_a_shard_without_room_are_redelivered(deployment: Deployment) -> None:
    # Given peak files of 40 datasets: each shard has some of them
    event = batch(*(message(f"d{number}", s3_record(f"d{number}/a.ndjson")) for number in range(40)))
    deployment.glue.without_room.add("stream-job-2")
    # When, Then, also if all are duplicates
    for _ in range(2):
        redelivered = failures(route(event, deployment.services))
        rows = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
        shards = deployment.services.settings.shards
        assert sorted(redelivered) == sorted(row.partition.dataset for row in rows if shards.of(row.id) == "2") != []
        assert running(deployment) == {"1", "3"}
    # When there is room
    deployment.glue.without_room.clear()
    assert failures(route(event, deployment.services)) == []
    assert running(deployment) == {"1", "2", "3"}


def test_the_sweep_renews_pointers_in_each_inbox_and_starts_each_job(deployment: Deployment) -> None:
    # Given a manifest of two shards without a pointer, one with two of them, and no room for the first job
    for shard in ("2", "3"):
        waits(deployment, shard)
    pointed = waits(deployment, "3")
    for _ in range(2):
        write_pointer(deployment.services, pointed.id, urgent=False)
    deployment.glue.without_room.add("stream-job-2")
    # When
    deployment.wait(timedelta(minutes=16))
    repair = Repair(deployment.services, deployment.now + timedelta(hours=1))
    renew_pointers(repair)
    # Then each gets one, except for the one that already has more than one
    assert repair.counts["repointed"] == 2
    inboxes = Counter(key.partition("/")[0] for key in deployment.keys("control", "inbox"))
    assert inboxes == {"inbox-2": 1, "inbox-3": 3}
    # And the other job is started
    assert running(deployment) == {"3"}
    assert [str(error).partition(" (")[0] for error in repair.errors] == [
        "Glue has no room to start the streaming job stream-job-2"
    ]


def test_a_promote_starts_each_job_that_has_room(deployment: Deployment) -> None:
    # Given queued files in the batch lane, and no room for one of the jobs
    names = [f"{number}.ndjson" for number in range(40)]
    deployment.configure(stream={"jobs": 3, "manifest_files": 1})
    owned(deployment, *names)
    deployment.glue.without_room.add("stream-job-2")
    # When
    answer = promote({"files": [f"s3://input/orders/{name}" for name in names]}, deployment.services)
    # Then all are promoted, the other jobs are started, and the error becomes a message
    assert answer["promoted"] == 40
    assert "stream-job-2" in answer["messages"][0]
    assert running(deployment) == {"1", "3"}
    inboxes = {key.partition("/")[0] for key in deployment.keys("control", "inbox")}
    assert inboxes == {"inbox", "inbox-2", "inbox-3"}
