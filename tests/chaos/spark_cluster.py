"""Spark's own cluster on this machine: two workers of one core, on hosts of their own.

Spark never starts a second copy of a task under a master ``local[n]``, nor on the host where the first one runs, which
is why ``local-cluster`` starts none either. The workers listen on two loopback addresses.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from local.processes import end_session

HOSTS = ("127.0.0.2", "127.0.0.3")
MASTER_HOST = "127.0.0.1"
REGISTERED = "Successfully registered with master"
SPARK_HOME = Path(pyspark.__file__).parent
CLUSTER_SETTINGS = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.jars": ""}
"""For a run on the cluster. The batch lane reads no file through Spark, so its executors need no jars."""


@contextmanager
def spark_cluster(
    folder: Path, environment: Mapping[str, str], wait: Callable[[str, Callable[[], object]], None]
) -> Iterator[str]:
    """Start a master and its workers; their processes end with the context. Yields the master's URL.

    ``folder``: for logs and scratch files. ``environment``: what the Python workers need beside the variables of this
    process. ``wait``: waits until a condition holds; gets what is waited for as well.
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
            wait(f"the worker on {host}", lambda log=log: REGISTERED in log.read_text())  # type: ignore[misc]
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
