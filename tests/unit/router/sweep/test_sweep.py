"""Repairs of the sweep on manifests: publishes, leases, pointers, stalled ones."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from lake.errors import TransientError
from lake.layout import lake_key
from lake.ledger import State
from lake.manifest import Lane
from router.ownership import RoutedArrival
from router.ownership.resolve import write_intent
from router.sweep.handler import sweep
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import changes, committed, published, unfinished, upload


def test_a_publish_older_than_the_limit_is_rolled_forward_and_a_younger_one_left_alone(deployment: Deployment) -> None:
    # Given a manifest whose publisher died right after the commit point
    row = committed(deployment, deployment.claimed(deployment.queued("a")))
    # When the sweep runs soon, then after the limit
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(minutes=61))
    done = sweep(deployment.services)
    # Then only the second finishes it
    assert changes(done) == {"rolledForward": 1}
    assert deployment.row(row.id).state == State.DONE
    assert len(deployment.keys("lake")) == 2
    assert len(deployment.keys("quarantine")) == 1


def test_an_expired_lease_is_released_and_a_live_one_is_not(deployment: Deployment) -> None:
    row = deployment.claimed(deployment.queued("a")).row
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(minutes=11))
    assert changes(sweep(deployment.services)) == {"released": 1}
    assert deployment.row(row.id).state == State.QUEUED


def test_a_lease_of_an_ended_run_is_released_at_once(deployment: Deployment) -> None:
    deployment.glue.runs = {"batch-job": {"jr_1": "FAILED", "jr_2": "RUNNING"}}
    ended = deployment.claimed(deployment.queued("a"), "jr_1").row
    live = deployment.claimed(deployment.queued("b"), "jr_2").row
    assert changes(sweep(deployment.services)) == {"released": 1}
    assert deployment.row(ended.id).state == State.QUEUED
    assert deployment.row(live.id).state == State.RUNNING


def test_a_lost_pointer_is_written_again_under_new_names_at_growing_intervals(deployment: Deployment) -> None:
    # Given a manifest of the stream without a pointer
    row = deployment.queued("a", lane=Lane.STREAM)
    minutes_of_new_pointers = []
    # When the sweep runs every quarter of an hour and no stream reads the inbox
    for minute in range(0, 601, 15):
        if sweep(deployment.services)["repointed"]:
            minutes_of_new_pointers.append(minute)
        deployment.wait(timedelta(minutes=15))
    # Then pointers are added at doubling intervals, and the streaming job was started
    assert minutes_of_new_pointers == [15, 30, 45, 60, 120, 240, 480]
    keys = deployment.keys("control", f"inbox/{row.id}-")
    assert len(keys) == len(set(keys)) == len(minutes_of_new_pointers)
    assert deployment.glue.runs["stream-job"]


def test_an_urgent_manifest_that_a_crashed_invocation_left_is_urgent_still(deployment: Deployment) -> None:
    # Given an intent of an urgent file and of another one, and nothing else
    routed = [
        RoutedArrival(file_of(f"orders/{name}"), PARTITION, Lane.STREAM, "test", urgent=name == "urgent/a")
        for name in ("urgent/a", "b")
    ]
    write_intent(deployment.services, routed, deployment.now)
    deployment.wait(timedelta(minutes=15))
    # When it is resumed, and its pointers are lost as well
    sweep(deployment.services)
    for key in deployment.keys("control", "inbox/"):
        deployment.raw_s3.delete_object(Bucket="control", Key=key)
    deployment.wait(timedelta(minutes=15))
    assert sweep(deployment.services)["repointed"] == 2
    # Then
    [row] = [row for row in deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED) if row.urgent]
    assert len(deployment.keys("control", f"inbox/urgent-{row.id}-")) == 1
    assert len(deployment.keys("control", "inbox/")) == 2


def test_the_stream_starts_with_the_first_sweep_after_the_quota_has_room(deployment: Deployment) -> None:
    # Given a manifest of the stream, and a night in which the account's quota has no room for the streaming job
    row = deployment.queued("a", lane=Lane.STREAM)
    deployment.glue.quota_is_full = True
    for _ in range(20):
        deployment.wait(timedelta(minutes=15))
        with suppress(TransientError):
            sweep(deployment.services)
    pointers = deployment.keys("control", f"inbox/{row.id}-")
    # When there is room, hours before the next pointer is due
    deployment.glue.quota_is_full = False
    deployment.wait(timedelta(minutes=15))
    assert sweep(deployment.services)["repointed"] == 0
    # Then the stream is started, for the pointers that it has
    assert deployment.glue.runs == {"stream-job": {"jr_1": "RUNNING"}}
    assert deployment.keys("control", f"inbox/{row.id}-") == pointers


def test_a_manifest_without_progress_is_reported(deployment: Deployment) -> None:
    deployment.queued("a")
    deployment.wait(timedelta(hours=35))
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(hours=2))
    assert changes(sweep(deployment.services)) == {"stalled": 1}


def test_a_manifest_of_an_old_hour_is_reported_only_after_its_reprocess_has_waited(deployment: Deployment) -> None:
    # Given a manifest of last month that was reprocessed, and a younger one that waits
    old = published(deployment, deployment.queued("a"))
    deployment.wait(timedelta(days=30))
    deployment.ledger.manifests.force(old, deployment.now)
    deployment.queued("b")
    # When sweeps come at once, and after the limit
    deployment.wait(timedelta(minutes=5))
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(hours=37))
    # Then an attempt in between has not hidden it
    deployment.ledger.manifests.release(deployment.claimed(deployment.row(old.id)).row, "test", deployment.now)
    assert changes(sweep(deployment.services)) == {"stalled": 2}


def test_a_manifest_that_went_to_the_batch_lane_gets_no_pointer(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an index that still shows a manifest of the stream lane, which was reprocessed in the batch lane
    hint = deployment.queued("a", lane=Lane.STREAM)
    deployment.ledger.manifests.force(published(deployment, hint), deployment.now)
    listed = deployment.ledger.manifests.open

    def lagging(_: Any, lane: Lane, state: State) -> Any:
        return iter([hint]) if (lane, state) == (Lane.STREAM, State.QUEUED) else listed(lane, state)

    monkeypatch.setattr(type(deployment.ledger.manifests), "open", lagging)
    deployment.wait(timedelta(hours=1))
    # When, Then: the row decides
    assert sweep(deployment.services)["repointed"] == 0
    assert deployment.glue.runs == {}


def test_a_repair_that_fails_does_not_stop_the_others(deployment: Deployment) -> None:
    # Given a manifest that Glue is asked about, a Glue that fails, and an upload to abort
    deployment.claimed(deployment.queued("a"))
    done = published(deployment, deployment.queued("b"))
    upload(deployment, "lake", lake_key(done.partition, done.id, 1, 9))
    deployment.glue.get_job_run = _throttled(deployment)
    # When the sweep runs
    with pytest.raises(Exception, match="Throttling"):
        sweep(deployment.services)
    # Then the error is raised, and the upload is aborted
    assert unfinished(deployment) == []


def _throttled(deployment: Deployment) -> Any:
    def get_job_run(**_: Any) -> None:
        raise deployment.glue.exceptions.ClientError({"Error": {"Code": "ThrottlingException"}}, "GetJobRun")

    return get_job_run
