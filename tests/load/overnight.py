"""Many manifests through the deployed ``overnight``: state machine, Lambda functions, Glue runs of a stub job."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cli.deployed_stack import DeployedStack
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane, Manifest, ObjectVersion, Partition, new_manifest_id
from lake.manifest_documents import write_manifest
from local.cloud import LocalCloud
from tests.e2e.scenario import Scenario
from tests.load.lanes import load_test_settings

WRITE_THREADS = 16
STUB = Path(__file__).with_name("stub_batch_job.py")


@dataclass(frozen=True, slots=True)
class OvernightExecution:
    """One execution of ``overnight``."""

    manifests: int
    runs: int
    status: str
    execution_seconds: float
    """From its start to its end."""
    jobs_seconds: float
    """From the start of the first Glue run to the end of the last one: the stub jobs, and the polling between them."""

    @property
    def manifests_per_second(self) -> float:
        """Average of the whole execution."""
        return self.manifests / self.execution_seconds


def overnight_load(cloud: LocalCloud, folder: Path, manifests: int) -> OvernightExecution:
    """Deploy the stack, queue the manifests, each in an hour of its own, and execute ``overnight`` with ``{}``."""
    scenario = Scenario.deploy(cloud, load_test_settings(), folder / "cdk.out")
    stack = scenario.deployment
    job = stack.resources.batch_job
    script = urlsplit(stack.glue.get_job(JobName=job)["Job"]["Command"]["ScriptLocation"])
    stack.s3.put_object(Bucket=script.netloc, Key=script.path.lstrip("/"), Body=STUB.read_bytes())
    with ThreadPoolExecutor(WRITE_THREADS) as pool:
        list(pool.map(lambda number: _enqueue(stack, number), range(manifests)))
    started = time.monotonic()
    execution = scenario.execute(stack.outputs.overnight, {})
    seconds = time.monotonic() - started
    still_open = [row.id for state in OPEN_STATES for row in stack.ledger.manifests.open(Lane.BATCH, state)]
    assert not still_open, f"{len(still_open)} manifests are still open after the execution"
    runs = stack.glue.get_job_runs(JobName=job)["JobRuns"]
    jobs = max(run["CompletedOn"] for run in runs) - min(run["StartedOn"] for run in runs)
    return OvernightExecution(manifests, len(runs), execution["status"], seconds, jobs.total_seconds())


def _enqueue(stack: DeployedStack, number: int) -> None:
    hour = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    resources = stack.resources
    file = ObjectVersion(resources.input_bucket, f"orders/{number}", "0" * 32, 1 << 30, hour.isoformat(), "v")
    manifest = Manifest(new_manifest_id(hour), Lane.BATCH, Partition.of("orders", hour), hour.isoformat(), (file,))
    write_manifest(stack.s3, resources.control_bucket, manifest)
    stack.ledger.manifests.enqueue(manifest)
