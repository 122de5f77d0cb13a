"""A control plane with three streaming jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.manifest import Lane
from tests.unit.lake.world import PARTITION

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from lake.manifest import Partition
    from tests.unit.router.conftest import Deployment

JOBS = {"1": "stream-job", "2": "stream-job-2", "3": "stream-job-3"}
"""Glue jobs by shard."""


def divide(deployment: Deployment) -> None:
    """Configure the three jobs; the latency goal of each is 4 seconds of 4 cores."""
    deployment.configure(stream={"jobs": 3, "latency_goal_seconds": 4, "max_workers": 2})


def running(deployment: Deployment) -> set[str]:
    """Shards with a run."""
    return {shard for shard, job in JOBS.items() if "RUNNING" in deployment.glue.runs.get(job, {}).values()}


def waits(deployment: Deployment, shard: str, partition: Partition = PARTITION) -> ManifestRow:
    """A manifest of the stream lane that goes to this shard, without a pointer."""
    shards = deployment.services.settings.shards
    while True:
        # Most ids go elsewhere: only the one that is kept is queued.
        manifest = deployment.manifest("a.json", lane=Lane.STREAM, partition=partition)
        if shards.of(manifest.id) == shard:
            return deployment.enqueued(manifest)
