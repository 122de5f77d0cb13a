"""One night of real job runs on the local cloud, and what it took. Times are seconds since the epoch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bench.input_files import Recipe, prepare
from lake.bills import MICRO
from lake.compression import has_compressed_name
from lake.ledger import State
from lake.manifest import Lane
from tests.e2e.waiting import wait_for
from tests.load.published import published_manifests

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.e2e.scenario import Scenario
    from tests.load.published import PublishedManifest

DATASET = "predicted"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job run of a night."""

    started: float
    first_task: float
    """When its first conversion began."""
    ended: float
    core_seconds: float
    """Time of its tasks."""


@dataclass(frozen=True, slots=True)
class MeasuredNight:
    """What one execution of ``overnight`` took."""

    sizes: dict[str, int]
    """Bytes as stored, by key."""
    core_seconds: dict[str, float]
    """Time of the tasks of each file, which is a manifest, by key."""
    put: dict[str, float]
    """End of the upload, by key."""
    published: dict[str, float]
    started: float
    ended: float
    job_runs: tuple[JobRun, ...]
    """In the order in which they ran."""
    manifests: int
    dollars: float
    """Of the cost rows. On the local cloud the clock stands in for the bill."""

    def speed(self, *, compressed: bool) -> float:
        """Bytes as stored a second and core, of the files of one kind; the ledger measures the same."""
        keys = [key for key in self.sizes if has_compressed_name(key) is compressed]
        return sum(self.sizes[key] for key in keys) / sum(self.core_seconds[key] for key in keys)

    @property
    def latencies(self) -> list[float]:
        """Seconds from the upload of each file until its rows could be read, sorted."""
        return sorted(self.published[key] - put for key, put in self.put.items())


def run_night(scenario: Scenario, recipes: Sequence[Recipe], cache: Path, name: str) -> MeasuredNight:
    """Put the files, wait until they are queued, run ``overnight``, and read what it took."""
    deployment = scenario.deployment
    paths = [path for recipe in recipes for path in prepare(recipe, cache, 2).paths]
    files = {f"{DATASET}/{name}_{number:03}_{path.name}": path for number, path in enumerate(paths)}
    put = {}
    for key, path in files.items():
        deployment.s3.put_object(Bucket=deployment.resources.input_bucket, Key=key, Body=path.read_bytes())
        put[key] = time.time()

    def queued() -> bool:
        return sum(row.files for row in deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)) == len(files)

    wait_for("all files to be queued", queued)
    execution = scenario.execute(deployment.outputs.overnight, {"dataset": DATASET})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    every = published_manifests(deployment.s3, deployment.resources.control_bucket)
    found = [item for item in every if not files.keys().isdisjoint(item.keys)]
    return MeasuredNight(
        {key: path.stat().st_size for key, path in files.items()},
        {key: item.core_seconds for item in found for key in item.keys},
        put,
        {key: item.published for item in found for key in item.keys},
        execution["startDate"].timestamp(),
        execution["stopDate"].timestamp(),
        _job_runs(scenario, found),
        len(found),
        _dollars(scenario, execution["name"]),
    )


def _job_runs(scenario: Scenario, published: Sequence[PublishedManifest]) -> tuple[JobRun, ...]:
    deployment, runs = scenario.deployment, []
    for job_run in {item.job_run for item in published}:
        own = [item for item in published if item.job_run == job_run]
        record = deployment.glue.get_job_run(JobName=deployment.resources.batch_job, RunId=job_run)["JobRun"]
        runs.append(
            JobRun(
                record["StartedOn"].timestamp(),
                min(item.started for item in own),
                record["CompletedOn"].timestamp(),
                sum(item.core_seconds for item in own),
            )
        )
    return tuple(sorted(runs, key=lambda run: run.started))


def _dollars(scenario: Scenario, execution: str) -> float:
    today = datetime.now(UTC).date()
    rows = scenario.deployment.ledger.costs.of_days(today - timedelta(days=1), today)
    return sum(row.micro_dollars for row in rows if row.execution == execution) / MICRO
