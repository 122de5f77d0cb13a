"""Who writes a pointer makes sure that the streaming job of its shard runs, and of no other one."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lake.errors import TransientError
from lake.ledger import State
from lake.manifest import Lane
from router.ownership import write_pointer
from router.requests.promote import promote
from router.route.handler import route
from router.sweep.manifests import renew_pointers
from router.sweep.repair import Repair
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import owned
from tests.unit.router.sharding import divide, running, waits

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment

DATASETS = [f"d{number}" for number in range(40)]
"""A manifest of each: no shard is left without one."""


@pytest.fixture(autouse=True)
def _shards(deployment: Deployment) -> None:
    divide(deployment)


def route_all(deployment: Deployment) -> list[str]:
    """Route a peak file of each dataset; the ids of the messages that failed."""
    messages = [message(name, s3_record(f"{name}/a.ndjson")) for name in DATASETS]
    return sorted(failures(route(batch(*messages), deployment.services)))


def datasets_of(deployment: Deployment, shard: str) -> list[str]:
    """Datasets whose manifests go to this shard."""
    shards = deployment.services.settings.shards
    rows = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    return sorted(row.partition.dataset for row in rows if shards.of(row.id) == shard)


def test_route_starts_the_job_of_each_shard_whose_run_is_not_alive(deployment: Deployment) -> None:
    # Given a run of one shard that is alive
    deployment.ledger.stream.of("3").record_heartbeat("jr_9", deployment.now)
    # When files of all shards arrive in peak hours
    assert route_all(deployment) == []
    # Then
    assert running(deployment) == {"1", "2"}


def test_only_the_events_of_a_shard_without_room_are_redelivered(deployment: Deployment) -> None:
    # Given
    deployment.glue.without_room.add("stream-job-2")
    # When, Then, also where all are duplicates
    for _ in range(2):
        assert route_all(deployment) == datasets_of(deployment, "2") != []
        assert running(deployment) == {"1", "3"}
    # When there is room
    deployment.glue.without_room.clear()
    assert route_all(deployment) == []
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
    # Then each gets one, but for the one that has more than one already
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
    # When, Then all are promoted, the other jobs are started, and the error is raised
    with pytest.raises(TransientError, match="stream-job-2"):
        promote({"files": [f"s3://input/orders/{name}" for name in names]}, deployment.services)
    assert running(deployment) == {"1", "3"}
    inboxes = {key.partition("/")[0] for key in deployment.keys("control", "inbox")}
    assert inboxes == {"inbox", "inbox-2", "inbox-3"}
