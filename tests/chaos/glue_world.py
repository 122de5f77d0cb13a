"""A deployment whose jobs are real Glue runs on the local cloud: real Spark, real processes, real signals."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyspark

from infra.jobs import SPARK_SETTINGS
from lake.ledger.manifest_row import OPEN_STATES
from lake.settings import Settings, dump_settings
from local import isolation
from local.cloud import LocalCloud
from local.isolation import REGION
from local.processes import end_session
from tests.chaos.glue_process import PLAN_VARIABLE
from tests.chaos.injection import Fault
from tests.chaos.world import EXPECTED_ERRORS, Clients, World
from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role

CHECKOUT = Path(__file__).resolve().parents[2]
PRODUCT = ("lake", "transform", "batch_job", "streaming_job", "verify")
INJECTION_MODULES = ("__init__", "injection", "glue_process", "glue_daemon")
OVER = frozenset({"STOPPED", "SUCCEEDED", "FAILED", "TIMEOUT", "ERROR", "EXPIRED"})
MAX_WAIT_SECONDS = 240


@dataclass
class GlueWorld(World):
    """A world with the real clock."""

    cloud_glue: Any = None
    job_role: str = ""
    clock_offset: timedelta = timedelta()
    """Moves the clock of the Lambdas, not the jobs' clock."""
    marks: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="chaos-marks-")))

    @classmethod
    def on(cls, cloud: LocalCloud, clients: Clients, random: Random, settings: Settings) -> "GlueWorld":
        """A new deployment on the local cloud, with its jobs."""
        world = cls.create(clients, random, settings, versions=True)
        assert isinstance(world, GlueWorld)
        world.cloud_glue = cloud.client("glue")
        # StartJobRun of a Lambda has no effect, because the test starts all runs itself.
        without_starts: Any = isolation.client("glue", cloud.endpoint, cloud.access_key)
        without_starts.start_job_run = lambda **_: {"JobRunId": "none"}
        world.glue = without_starts
        # The local cloud starts no run whose role Glue may not assume.
        world.job_role = create_unlimited_role(cloud.client("iam"), f"jobs-of-{world.resources.stream_job}")
        world.deploy()
        return world

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.clock_offset

    def deploy(self) -> None:
        """Create the jobs of this deployment as the stack does, with the injection modules added to the product's."""
        control = self.resources.control_bucket
        packages = [path for name in PRODUCT for path in (CHECKOUT / name).rglob("*.py")]
        modules = [CHECKOUT / "tests/chaos" / f"{name}.py" for name in INJECTION_MODULES]
        documents = {
            "assets/product.zip": _zip(packages),
            "assets/chaos.zip": _zip([CHECKOUT / "tests/__init__.py", *modules]),
            "assets/run_job.py": (CHECKOUT / "tests/chaos/glue_process.py").read_bytes(),
            "assets/settings.json": dump_settings(self.settings).encode(),
        }
        for key, data in documents.items():
            self.clients.s3.put_object(Bucket=control, Key=key, Body=data)
        for name, job, command in (
            (self.resources.batch_job, "batch_job", "glueetl"),
            (self.resources.stream_job, "streaming_job", "gluestreaming"),
        ):
            self.cloud_glue.create_job(
                Name=name,
                Role=self.job_role,
                Command={"Name": command, "ScriptLocation": f"s3://{control}/assets/run_job.py", "PythonVersion": "3"},
                ExecutionProperty={"MaxConcurrentRuns": 3},
                DefaultArguments={
                    **self.resources.to_arguments(),
                    "--settings": f"s3://{control}/assets/settings.json",
                    "--region": REGION,
                    "--extra-py-files": f"s3://{control}/assets/product.zip,s3://{control}/assets/chaos.zip",
                    "--conf": self.spark_conf({}),
                    "--job": job,
                    "--chaos": self._plan(None),
                },
            )

    def spark_conf(self, changes: dict[str, str]) -> str:
        """The value of ``--conf``: speculation as in production, which has no effect under a master ``local[n]``."""
        settings = {**SPARK_SETTINGS, "spark.python.daemon.module": "tests.chaos.glue_daemon"}
        settings |= {"spark.speculation.minTaskRuntime": "100ms", "spark.driver.memory": "1g", **changes}
        return " --conf ".join(f"{name}={value}" for name, value in settings.items())

    def worker_environment(self, fault: Fault | None) -> dict[str, str]:
        """For the Python workers of a separate cluster: on ``local[n]`` they inherit it from their driver."""
        return {PLAN_VARIABLE: self._plan(fault), "PYTHONPATH": str(CHECKOUT), "PYSPARK_PYTHON": sys.executable}

    def run(self, kind: str, work: Callable[[str], Any], job: str | None = None) -> Any:
        """Run a Lambda in this process, without faults; return its result, or None if it failed."""
        try:
            return work(kind)
        except EXPECTED_ERRORS as error:
            self.log.append(f"{kind}: {type(error).__name__}: {error}")
            return None

    def start(self, job: str, fault: Fault | None, **arguments: str) -> str:
        job_arguments = {f"--{name}": value for name, value in arguments.items()} | {"--chaos": self._plan(fault)}
        run: str = self.cloud_glue.start_job_run(JobName=job, Arguments=job_arguments)["JobRunId"]
        return run

    def state(self, job: str, run: str) -> str:
        state: str = self.cloud_glue.get_job_run(JobName=job, RunId=run)["JobRun"]["JobRunState"]
        return state

    def wait(self, what: str, condition: Callable[[], object], seconds: float = MAX_WAIT_SECONDS) -> None:
        wait_for(what, condition, seconds)

    def finish(self, job: str, run: str) -> str:
        self.wait(f"the end of {run}", lambda: self.state(job, run) in OVER)
        self.log.append(f"{job} {run[:9]}: {self.state(job, run)}")
        return self.state(job, run)

    def injected(self) -> str | None:
        """Process id and name of the injected fault; None if it was not reached yet."""
        mark = self.marks / "fired"
        return mark.read_text() if mark.exists() else None

    def resume(self) -> None:
        """Send SIGCONT to the stopped process."""
        text = self.injected()
        assert text is not None
        os.kill(int(text.partition(" ")[0]), signal.SIGCONT)

    def run_document(self, manifests: list[str]) -> str:
        """Write a run document of these manifests without a plan; return its URI."""
        self.numbers += 1
        key = f"plans/manual-{self.numbers}/runs/00000.json"
        self.clients.s3.put_object(
            Bucket=self.resources.control_bucket, Key=key, Body=json.dumps({"manifests": manifests}).encode()
        )
        return f"s3://{self.resources.control_bucket}/{key}"

    def open_rows(self) -> list[dict[str, Any]]:
        """Raw items of the manifests that are not terminal."""
        return [item for item in self.items() if item["pk"].startswith("manifest#") and item["state"] in OPEN_STATES]

    def _plan(self, fault: Fault | None) -> str:
        fields = None if fault is None else [fault.point, fault.when, fault.nth, fault.action]
        return json.dumps({"marks": str(self.marks), "fault": fields})


def _zip(paths: list[Path]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in paths:
            archive.write(path, path.relative_to(CHECKOUT))
    return buffer.getvalue()


HOSTS = ("127.0.0.2", "127.0.0.3")
MASTER_HOST = "127.0.0.1"
REGISTERED = "Successfully registered with master"
SPARK_HOME = Path(pyspark.__file__).parent
CLUSTER_SETTINGS = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
"""For a run on the cluster."""


@contextmanager
def spark_cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Spark's own cluster on this machine: two workers of one core, on different hosts. Yields the master's URL.

    Spark never starts a second copy of a task under a master ``local[n]``, nor on the host where the first one runs,
    which is why ``local-cluster`` starts none either. The workers listen on two loopback addresses.

    ``folder``: for logs and scratch files. ``environment``: additional variables that the Python workers need.
    """
    with socket.socket() as probe:
        probe.bind((MASTER_HOST, 0))
        port = probe.getsockname()[1]
    url = f"spark://{MASTER_HOST}:{port}"
    with ExitStack() as stack:
        arguments = ["master.Master", "--host", MASTER_HOST, "--port", str(port)]
        stack.enter_context(_process(folder / "master", MASTER_HOST, arguments, environment))
        for host in HOSTS:
            arguments = ["worker.Worker", "--host", host, "--cores", "1", "--memory", "700m", url]
            stack.enter_context(_process(folder / host, host, arguments, environment))
        for host in HOSTS:
            log = folder / host / "log"
            wait_for(f"the worker on {host}", lambda log=log: REGISTERED in log.read_text())  # type: ignore[misc]
        yield url


@contextmanager
def _process(folder: Path, host: str, arguments: list[str], environment: Mapping[str, str]) -> Iterator[None]:
    folder.mkdir(parents=True)
    command, *options = arguments
    own = {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_DIR": str(folder),
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [SPARK_HOME / "bin/spark-class", f"org.apache.spark.deploy.{command}", "--webui-port", "0", *options],
            env={**os.environ, **own, **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield
    finally:
        end_session(process.pid)
        process.wait()
