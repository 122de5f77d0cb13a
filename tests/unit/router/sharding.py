"""A control plane with three streaming jobs: two numbered ones, and one for the dataset ``clicks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.manifest import Lane
from lake.partition import Partition
from tests.unit.lake.world import PARTITION

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from tests.unit.router.conftest import Deployment

RULES = [{"name": "clicks", "prefix": "clicks/", "stream_job": "clicks"}, {"name": "{folder}"}]
JOBS = {"1": "stream-job", "2": "stream-job-2", "clicks": "stream-job-clicks"}
"""Glue jobs by shard: ``tracks`` goes to the second one."""
CLICKS = Partition("clicks", PARTITION.date, PARTITION.hour)
TRACKS = Partition("tracks", PARTITION.date, PARTITION.hour)


def divide(deployment: Deployment) -> None:
    """Configure the three jobs; the latency goal of each is 4 seconds of 4 cores."""
    deployment.configure(datasets=RULES, stream={"jobs": 2, "latency_goal_seconds": 4, "max_workers": 2})


def running(deployment: Deployment) -> set[str]:
    """Shards with a run."""
    return {shard for shard, job in JOBS.items() if "RUNNING" in deployment.glue.runs.get(job, {}).values()}


def waits(deployment: Deployment, partition: Partition) -> ManifestRow:
    """A manifest of the stream lane, without a pointer."""
    return deployment.queued("a.json", lane=Lane.STREAM, partition=partition)
