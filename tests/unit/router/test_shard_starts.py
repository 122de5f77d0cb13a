"""Who writes a pointer makes sure that the streaming job of its shard runs, and of no other one."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lake.errors import TransientError
from router.ownership import write_pointer
from router.promote.handler import promote
from router.route.handler import route
from router.sweep.pointers import renew_pointers
from router.sweep.repair import Repair
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.promote.promoting import owned
from tests.unit.router.sharding import CLICKS, TRACKS, divide, running, waits

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


@pytest.fixture(autouse=True)
def _shards(deployment: Deployment) -> None:
    divide(deployment)


def test_route_starts_the_job_of_each_shard_whose_run_is_not_alive(deployment: Deployment) -> None:
    # Given a run of one shard that is alive
    deployment.ledger.stream.of("clicks").record_heartbeat("jr_9", deployment.now)
    # When files of two shards arrive in peak hours
    messages = [message(name, s3_record(f"{name}/a.ndjson")) for name in ("clicks", "tracks")]
    assert failures(route(batch(*messages), deployment.services)) == []
    # Then
    assert running(deployment) == {"2"}


def test_only_the_events_of_a_shard_without_room_are_redelivered(deployment: Deployment) -> None:
    # Given
    deployment.glue.without_room.add("stream-job-2")
    messages = [message(name, s3_record(f"{name}/a.ndjson")) for name in ("clicks", "tracks")]
    # When, Then, also where both are duplicates
    for _ in range(2):
        assert failures(route(batch(*messages), deployment.services)) == ["tracks"]
        assert running(deployment) == {"clicks"}
    # When there is room
    deployment.glue.without_room.clear()
    assert failures(route(batch(*messages), deployment.services)) == []
    assert running(deployment) == {"2", "clicks"}


def test_the_sweep_renews_pointers_in_each_inbox_and_starts_each_job(deployment: Deployment) -> None:
    # Given a manifest of two shards without a pointer, one with two of them, and no room for the first job
    for partition in (TRACKS, CLICKS):
        waits(deployment, partition)
    pointed = waits(deployment, CLICKS)
    for _ in range(2):
        write_pointer(deployment.services, pointed.id, CLICKS.dataset, urgent=False)
    deployment.glue.without_room.add("stream-job-2")
    # When
    deployment.wait(timedelta(minutes=16))
    repair = Repair(deployment.services, deployment.now + timedelta(hours=1))
    renew_pointers(repair)
    # Then each gets one, but for the one that has more than one already
    assert repair.counts["repointed"] == 2
    inboxes = Counter(key.partition("/")[0] for key in deployment.keys("control", "inbox"))
    assert inboxes == {"inbox-2": 1, "inbox-clicks": 3}
    # And the other job is started
    assert running(deployment) == {"clicks"}
    assert [str(item.error).partition(" (")[0] for item in repair.failed] == [
        "Glue has no room to start the streaming job stream-job-2"
    ]


def test_a_promote_starts_each_job_that_has_room(deployment: Deployment) -> None:
    # Given queued files of two shards in the batch lane, and no room for the first of their jobs
    for partition in (TRACKS, CLICKS):
        owned(deployment, "a.ndjson", partition=partition)
    deployment.glue.without_room.add("stream-job-2")
    files = [f"s3://input/{name}/a.ndjson" for name in ("tracks", "clicks")]
    # When, Then both are promoted, the other job is started, and the error is told
    with pytest.raises(TransientError, match="stream-job-2"):
        promote({"files": files}, deployment.services)
    assert running(deployment) == {"clicks"}
    assert [key.partition("/")[0] for key in deployment.keys("control", "inbox")] == ["inbox-2", "inbox-clicks"]
