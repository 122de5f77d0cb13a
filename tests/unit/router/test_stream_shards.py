"""The control plane with several streaming jobs: each has its inbox, row, window and backlog."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lake.errors import TransientError
from lake.ledger.costs import DatasetMeasurement
from router.ownership import write_pointer
from router.route.decide_lanes import decide_lanes
from router.sweep.stream_health import StreamHealth, measure_stream
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.sharding import JOBS, divide, running, waits
from tests.unit.router.stream_actions import act

if TYPE_CHECKING:
    from lake.manifest import Partition
    from tests.unit.router.conftest import Deployment


@pytest.fixture(autouse=True)
def _shards(deployment: Deployment) -> None:
    divide(deployment)


def end_runs(deployment: Deployment, *shards: str) -> None:
    for shard in shards:
        deployment.glue.runs[JOBS[shard]] = dict.fromkeys(deployment.glue.runs[JOBS[shard]], "SUCCEEDED")


def slow(deployment: Deployment, partition: Partition) -> None:
    """Ten bytes a second are all that a core converts of the dataset."""
    measured = DatasetMeasurement(input_bytes=20_000_000, output_bytes=1, task_milliseconds=2_000_000_000)
    deployment.ledger.datasets.add_measurement(partition.dataset, measured)


def test_a_pointer_goes_to_the_inbox_of_the_shard_and_another_setting_moves_the_next_one(
    deployment: Deployment,
) -> None:
    # Given a manifest of each shard, and then one shard only
    for shard in ("2", "3"):
        row = waits(deployment, shard)
        write_pointer(deployment.services, row.id, urgent=False)
    assert [key.partition("/")[0] for key in deployment.keys("control", "inbox")] == ["inbox-2", "inbox-3"]
    deployment.configure()
    # When the next one is written, Then it is where a single job looks
    write_pointer(deployment.services, row.id, urgent=True)
    assert [key.partition("/")[0] for key in deployment.keys("control", "inbox/urgent-")] == ["inbox"]


def test_a_window_is_that_of_all_shards_and_each_ends_by_itself(deployment: Deployment) -> None:
    # When it opens, Then each has a run and a row
    assert act(deployment, "start") == {"running": True, "windowOver": False, "stopped": False}
    assert running(deployment) == set(JOBS)
    windows = {deployment.ledger.stream.of(shard).get().window_until for shard in JOBS}
    assert windows == {"2026-11-20T19:15:00.000+00:00"}
    for shard in JOBS:
        deployment.ledger.stream.of(shard).begin_run("jr", deployment.now)
    # When it ends, and one of them at once
    assert act(deployment, "stop")["stopping"] == "1,2,3"
    end_runs(deployment, "2")
    waits(deployment, "2")
    answer = act(deployment, "stop", "1,2,3")
    assert (answer["stopped"], answer["stopping"]) == (False, "1,3")
    # Then what is left for it has a new run, which no later round asks to end
    assert running(deployment) == set(JOBS)
    end_runs(deployment, "1")
    assert act(deployment, "stop", answer["stopping"])["stopping"] == "3"
    assert not deployment.ledger.stream.of("2").get().stop_requested
    # And only what did not end in time is killed
    assert act(deployment, "kill", "3")["killed"] == 1
    assert running(deployment) == {"2"}


def test_a_shard_that_was_removed_meanwhile_is_not_asked(deployment: Deployment) -> None:
    act(deployment, "start")
    deployment.configure()
    assert act(deployment, "stop", "2,3") == {
        "running": False,
        "windowOver": True,
        "stopped": True,
        "stopping": "",
    }


def test_a_shard_that_is_added_joins_the_window(deployment: Deployment) -> None:
    # Given a window of one job
    three = deployment.services
    deployment.configure()
    act(deployment, "start")
    # When there are three
    deployment.services = three
    assert act(deployment, "watch") == {
        "running": True,
        "windowOver": False,
        "stopped": False,
        "backlogBytes": 0,
        "spilling": False,
        "microBatchMinutes": 0,
    }
    # Then
    assert running(deployment) == set(JOBS)


def test_outside_the_window_only_the_shard_with_work_gets_a_run(deployment: Deployment) -> None:
    waits(deployment, "3")
    act(deployment, "watch")
    assert running(deployment) == {"3"}


def test_a_shard_that_cannot_start_does_not_keep_the_others_from_their_watch(deployment: Deployment) -> None:
    # Given no room for a run of the first shard, and a backlog of the last one
    act(deployment, "start")
    deployment.ledger.stream.begin_run("jr_1", deployment.now)
    end_runs(deployment, "1")
    deployment.glue.quota_is_full = True
    slow(deployment, PARTITION)
    for _ in range(2):
        waits(deployment, "3")
    # When, Then
    with pytest.raises(TransientError, match="no room to start the streaming job stream-job "):
        act(deployment, "watch")
    assert deployment.ledger.stream.of("3").get().spilling


def test_the_latency_goal_is_that_of_each_shard(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    # Given as much work for one shard as its four cores convert in eight seconds, in place of four
    slow(deployment, PARTITION)
    for _ in range(4):
        waits(deployment, "3")
    waits(deployment, "2")
    # When
    answer = act(deployment, "watch")
    # Then peak files spill, because any of them could go there; urgent files do not
    assert (answer["spilling"], answer["backlogBytes"]) == (True, 500)
    files = [file_of("orders/a.json"), file_of("orders/urgent/a.json")]
    decisions = decide_lanes(deployment.services, files, deployment.now)
    assert [decisions[file].lane for file in files] == ["batch", "stream"]  # type: ignore[union-attr]


def test_the_health_of_the_lane_is_that_of_its_worst_shards(deployment: Deployment) -> None:
    # Given a window, one run that works, and an older manifest of another shard
    act(deployment, "start")
    waits(deployment, "3")
    deployment.wait(timedelta(minutes=6))
    waits(deployment, "2")
    deployment.wait(timedelta(minutes=2))
    deployment.ledger.stream.of("2").record_heartbeat("jr_2", deployment.now)
    # When, Then
    assert measure_stream(deployment.services) == StreamHealth(oldest_minutes=8, silent=("1", "3"))


def test_what_a_run_of_another_shard_has_taken_is_released_when_that_run_has_ended(deployment: Deployment) -> None:
    # Given a manifest of the second shard, whose pointer the first one has read, before its run ended
    from router.executions.run_status import release_unheld

    deployment.glue.runs["stream-job"] = {"jr_1": "RUNNING"}
    row = deployment.claimed(waits(deployment, "2"), "jr_1").row
    assert release_unheld(deployment.services, [row]) == []
    deployment.glue.runs["stream-job"] = {"jr_1": "FAILED"}
    # When, Then
    assert release_unheld(deployment.services, [row]) == [row]
