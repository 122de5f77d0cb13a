"""``hybrid-router spark-history``: Spark's own pages about job runs, from the event logs that the stage keeps."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.end_signals import ended_by_signal
from cli.exit_codes import NotFoundError
from cli.inspect.event_logs import copy_event_logs, newest_event_logs
from cli.progress import shown_when_slow
from lake.errors import HybridRouterError, InvalidInputError
from lake.texts import format_count, format_size
from local.spark_jars import java_command, spark_class

SERVER = "org.apache.spark.deploy.history.HistoryServer"
HOST = "127.0.0.1"
"""The pages have no password, and show names of files and columns."""
MAX_START_SECONDS = 120
"""Until the server has read all event logs."""
POLL_SECONDS = 0.2
SERVER_LOG = "server.log"
MAX_QUOTED_LINES = 20
EVENT_LOGS_ARGUMENT = "--spark-event-logs-path"


class HistoryServerError(HybridRouterError):
    """The history server has not started, or is too slow."""


def serve_history(stack: DeployedStack, run: str | None, limit: int, port: int) -> int:
    """Copy the newest event logs, serve Spark's pages about them until Ctrl-C; 1: there is none, or none of the run."""
    java_command()
    _check_port(port)
    bucket = stack.resources.control_bucket
    with shown_when_slow("listing event logs"):
        logs = newest_event_logs(stack.s3, bucket, limit)
    if not logs:
        raise NotFoundError(_why_there_is_none(stack))
    with ended_by_signal(), tempfile.TemporaryDirectory(prefix="hybrid-router-spark-history-") as name:
        folder = Path(name)
        with shown_when_slow(
            f"copying {format_count(len(logs), 'event log')}, {format_size(sum(log.size for log in logs))}"
        ):
            copy_event_logs(stack.s3, bucket, logs, _folder_of_logs(folder))
        with _server(folder, port) as server:
            return _show(server, folder, f"http://{HOST}:{port}", run, len(logs))


def _show(server: subprocess.Popen[bytes], folder: Path, address: str, run: str | None, logs: int) -> int:
    with shown_when_slow("Spark reads the event logs"):
        applications = _wait_until_read(server, folder, address, run, logs)
    page = address
    if run is not None:
        found = next((item for item in applications if _is_of(item, run)), None)
        if found is None:
            raise NotFoundError(
                f"none of the newest {format_count(logs, 'event log')} is of job run {run}: pass a higher --limit if "
                "it is older; the log of a job run is complete when the run has ended"
            )
        page = f"{address}/history/{found['id']}/jobs/"
    typer.echo(f"{page}   (event logs: {logs:,}; Ctrl-C ends the server)")
    server.wait()
    raise _ended(server, folder)


def _wait_until_read(
    server: subprocess.Popen[bytes], folder: Path, address: str, run: str | None, logs: int
) -> list[dict[str, Any]]:
    """The applications that the server knows as soon as it answers; for a run: once it knows the run's, or all."""
    deadline = time.monotonic() + MAX_START_SECONDS
    while True:
        if server.poll() is not None:
            raise _ended(server, folder)
        found = _applications(address)
        is_known = run is None or any(_is_of(item, run) for item in found or ())
        if found is not None and (is_known or len(found) >= logs):
            return found
        if time.monotonic() > deadline:
            raise _late(folder, found, run, logs)
        time.sleep(POLL_SECONDS)


def _applications(address: str) -> list[dict[str, Any]] | None:
    """The answer of Spark's REST API ("Monitoring and Instrumentation"); None: the server does not have it yet."""
    try:
        with urllib.request.urlopen(f"{address}/api/v1/applications", timeout=MAX_START_SECONDS) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)
            return found
    except (OSError, json.JSONDecodeError):
        # Until the API is there, every path is answered with the first page.
        return None


def _is_of(application: dict[str, Any], run: str | None) -> bool:
    """The jobs name their application after the job run."""
    return run is not None and str(application["name"]).split(" ")[-1] == run


def _check_port(port: int) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((HOST, port))
        except OSError as error:
            raise InvalidInputError(f"port {port} of this machine is taken: pass another --port") from error


@contextmanager
def _server(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Spark's history server over the logs in ``folder``, until the block is left."""
    properties = {
        "spark.history.fs.logDirectory": _folder_of_logs(folder).as_uri(),
        "spark.history.ui.port": str(port),
        # Without it the server takes the next port that is free.
        "spark.port.maxRetries": "0",
    }
    file = folder / "spark.conf"
    file.write_text("".join(f"{key} {value}\n" for key, value in properties.items()), encoding="utf-8")
    environment = {**os.environ, "SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_IP": HOST}
    with (folder / SERVER_LOG).open("wb") as log:
        server = subprocess.Popen(
            [*server_command(), "--properties-file", str(file)],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            # In a session of its own: Ctrl-C is for this process, which ends the server.
            start_new_session=True,
        )
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def server_command() -> list[str]:
    """What starts the history server of the installed pyspark."""
    return [str(spark_class()), SERVER]


def _ended(server: subprocess.Popen[bytes], folder: Path) -> HistoryServerError:
    return HistoryServerError(
        f"Spark's history server has ended with exit code {server.returncode}. It said:{_last_lines(folder)}"
    )


def _late(folder: Path, found: list[dict[str, Any]] | None, run: str | None, logs: int) -> HistoryServerError:
    """The server does not answer, or has not read all event logs and does not know the run."""
    time_over = f"within {format_count(MAX_START_SECONDS, 'second')}"
    advice = "pass a smaller --limit, so that it has less to read"
    if found is not None:
        number = f"{len(found):,} of {format_count(logs, 'event log')}"
        return HistoryServerError(
            f"Spark's history server has read {number} {time_over}, and none of these is of job run {run}: {advice}"
        )
    return HistoryServerError(
        f"Spark's history server has not answered {time_over}: {advice}. It said:{_last_lines(folder)}"
    )


def _last_lines(folder: Path) -> str:
    said = (folder / SERVER_LOG).read_text(encoding="utf-8", errors="replace").splitlines()[-MAX_QUOTED_LINES:]
    return "".join(f"\n{line}" for line in said)


def _folder_of_logs(folder: Path) -> Path:
    logs = folder / "event-logs"
    logs.mkdir(exist_ok=True)
    return logs


def _why_there_is_none(stack: DeployedStack) -> str:
    job = stack.glue.get_job(JobName=stack.resources.batch_job)["Job"]
    if EVENT_LOGS_ARGUMENT in job.get("DefaultArguments", {}):
        return "there are no event logs yet: those of a job run are stored while it runs and expire after 30 days"
    return "the stage keeps no event logs: set spark.ui_logs = true in its settings and deploy it, for later runs"
