"""A night of many manifests through the deployed ``overnight``: state machine, Lambdas, Glue runs of a stub job."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cli.deployed_stack import Deployment
from infra.synth import synth
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane, Manifest, ObjectVersion, new_manifest_id, write_manifest
from lake.partition import Partition
from local import isolation
from tests.e2e.scenario import Scenario
from tests.load.lanes import settings

if TYPE_CHECKING:
    from local.cloud import LocalCloud

WRITERS = 16
STUB = Path(__file__).with_name("stub_batch_job.py")


@dataclass(frozen=True, slots=True)
class Night:
    """One execution of ``overnight``; seconds."""

    manifests: int
    runs: int
    status: str
    execution: float
    """From its start to its end."""
    jobs: float
    """From the start of the first Glue run to the end of the last; the stub's part, and the control plane's polling."""

    @property
    def manifests_per_second(self) -> float:
        """Of the whole execution."""
        return self.manifests / self.execution


def night(cloud: LocalCloud, folder: Path, manifests: int) -> Night:
    """Deploy, queue the manifests, each in an hour of its own, and execute ``overnight`` with ``{}``."""
    outputs = cloud.deploy(synth(replace(settings(), stage="night"), folder / "cdk.out"))
    deployment = Deployment.connect(outputs, isolation.session(), cloud.endpoint, isolation.client_config())
    job = deployment.resources.batch_job
    script = urlsplit(deployment.glue.get_job(JobName=job)["Job"]["Command"]["ScriptLocation"])
    deployment.s3.put_object(Bucket=script.netloc, Key=script.path.lstrip("/"), Body=STUB.read_bytes())
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda number: _enqueue(deployment, number), range(manifests)))
    started = time.monotonic()
    execution = Scenario(cloud, deployment).execute(deployment.outputs.overnight, {})
    seconds = time.monotonic() - started
    left = [row.id for state in OPEN_STATES for row in deployment.ledger.manifests.open(Lane.BATCH, state)]
    assert not left, f"the night left {len(left)} manifests behind"
    runs = deployment.glue.get_job_runs(JobName=job)["JobRuns"]
    jobs = max(run["CompletedOn"] for run in runs) - min(run["StartedOn"] for run in runs)
    return Night(manifests, len(runs), execution["status"], seconds, jobs.total_seconds())


def _enqueue(deployment: Deployment, number: int) -> None:
    hour = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    resources = deployment.resources
    file = ObjectVersion(resources.input_bucket, f"orders/{number}", "0" * 32, 1 << 30, hour.isoformat(), "v")
    manifest = Manifest(new_manifest_id(hour), Lane.BATCH, Partition.of("orders", hour), hour.isoformat(), (file,))
    write_manifest(deployment.s3, resources.control_bucket, manifest)
    deployment.ledger.manifests.enqueue(manifest)
