"""DynamoDB Local and MinIO as processes on loopback, each with nothing in it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from typing import TYPE_CHECKING

from tests.conformance.tools import ToolError, dynamodb_local, go_programs
from tests.unit.lake.world import REGION, SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAX_START_SECONDS = 60


@contextlib.contextmanager
def dynamodb(folder: Path) -> Iterator[str]:
    """The endpoint of a DynamoDB Local; ``folder`` gets its log."""
    jars, port = dynamodb_local(), _free_port()
    main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
    command = ["java", f"-Djava.library.path={jars}", "-cp", f"{jars}/*", main]
    quiet = {"DDB_LOCAL_TELEMETRY": "0"}
    with _server([*command, "-inMemory", "-sharedDb", "-port", str(port)], port, folder / "dynamodb.log", quiet):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def minio(folder: Path) -> Iterator[str]:
    """The endpoint of a MinIO whose objects and log are in ``folder``."""
    port, console = _free_port(), _free_port()
    addresses = ["--address", f"127.0.0.1:{port}", "--console-address", f"127.0.0.1:{console}"]
    command = [str(go_programs() / "minio"), "server", *addresses, str(folder / "objects")]
    variables = {"MINIO_ROOT_USER": SECRET, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_REGION": REGION}
    with _server(command, port, folder / "minio.log", variables):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def _server(command: Sequence[str], port: int, log: Path, variables: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        environment = {**os.environ, **variables}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=log.parent)
    try:
        deadline = time.monotonic() + MAX_START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ToolError(f"{command[0]} does not answer: {log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
