"""Spark's own pages about a job run of the local cloud, by the command and by Spark's REST API."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.exit_codes import ExitCode
from lake.ledger import State
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.scenario import Scenario

pytestmark = pytest.mark.long
CHECKOUT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def spark_history(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The command, as a person starts it in ``folder``, and the file of what it prints."""
    output = folder / "output"
    with output.open("wb") as file:
        command = subprocess.Popen(
            [sys.executable, "-m", "cli", "spark-history", "--local", "--stage", "e2e", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "XDG_STATE_HOME": str(folder)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield command, output
    finally:
        command.terminate()
        command.wait()


def test_the_history_server_shows_a_job_run(scenario: Scenario, tmp_path: Path) -> None:
    # Given a job run that has converted a file
    file = scenario.put("in_history/a.ndjson", ['{"n": 1}'])
    scenario.wait_state(file, State.QUEUED)
    execution = scenario.execute(scenario.deployment.outputs.overnight, {"dataset": "in_history"})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    run = str(scenario.wait_state(file, State.DONE).owner)
    # When a person asks for its page
    write_state(scenario, tmp_path / "hybrid-router" / "local")
    port = free_port()
    with spark_history(tmp_path, "--run", run, "--port", str(port)) as (command, output):
        wait_for("the address", lambda: output.read_text() or command.poll() is not None)
        page = output.read_text()
        # Then the server has the run and its jobs, as Spark recorded them
        assert page.startswith(f"http://127.0.0.1:{port}/history/"), page
        application, api = page.split("/")[4], f"http://127.0.0.1:{port}/api/v1/applications"
        found = {item["id"]: item for item in read(api)}[application]
        assert found["name"] == f"hybrid-router-batch {run}"
        jobs = read(f"{api}/{application}/jobs")
        assert jobs
        assert {job["status"] for job in jobs} == {"SUCCEEDED"}
        # And Ctrl-C ends it
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == ExitCode.INTERRUPTED
    with socket.socket() as later:
        assert later.connect_ex(("127.0.0.1", port)) != 0


def read(address: str) -> list[dict]:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)


def write_state(scenario: Scenario, folder: Path) -> None:
    """What ``local up`` writes, by which a command finds the cloud."""
    folder.mkdir(parents=True)
    outputs, key = scenario.deployment.outputs.to_outputs(), asdict(scenario.cloud.access_key)
    state = {"endpoint": scenario.cloud.endpoint, "access_key": key, "outputs": outputs}
    (folder / "e2e.json").write_text(json.dumps(state))
