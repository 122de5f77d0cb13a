"""`hybrid-router local up` and other commands, started as a user starts them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cli.local_stage.local_clouds import local_state
from infra.names import stack_name
from local import isolation
from local.processes import end_session
from tests.e2e import other_clouds
from tests.e2e.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.e2e.scenario import Scenario

CHECKOUT = Path(__file__).resolve().parents[2]
READY = "Ctrl-C ends everything"
SETTINGS = "[peak]\nhours = []\ndays = []\n[stream]\ntrigger_seconds = 1\n"
"""Without peak hours only urgent files go to the stream lane, at any time of day."""


def leave_local_state(scenario: Scenario, stage: str) -> None:
    """Write the file by which ``--local`` finds a stack of the scenario's cloud."""
    (stack,) = scenario.cloud.client("cloudformation").describe_stacks(StackName=stack_name(stage))["Stacks"]
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]}
    key, endpoint = asdict(scenario.cloud.access_key), scenario.cloud.endpoint
    local_state().mkdir(parents=True, exist_ok=True)
    found = {"endpoint": endpoint, "access_key": key, "outputs": outputs}
    (local_state() / f"{stage}.json").write_text(json.dumps(found))


class LocalUp:
    """A running ``hybrid-router local up``."""

    def __init__(self, folder: Path, stage: str) -> None:
        settings = folder / f"{stage}.toml"
        settings.write_text(f'stage = "{stage}"\n{SETTINGS}')
        self._log = folder / f"{stage}.log"
        self.stage = stage
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli", "local", "up", "--settings", str(settings)],
                cwd=CHECKOUT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """Everything that it has printed."""
        return self._log.read_text()

    def ready(self) -> bool:
        """Whether it has deployed the stack and waits for Ctrl-C."""
        assert self.process.poll() is None, self.output
        return READY in self.output

    def printed(self, name: str) -> str:
        """The value that it printed after ``name``."""
        return next(line.split()[1] for line in self.output.splitlines() if line.startswith(f"{name} "))

    def client(self, service: str) -> isolation.AwsClient:
        """A client with the cloud's own key."""
        key = json.loads((local_state() / f"{self.stage}.json").read_text())["access_key"]
        return isolation.client(service, self.printed("endpoint"), isolation.AccessKey(**key))

    def end(self) -> None:
        """End it as Ctrl-C does, so that it removes its files; kill it if it does not end in time."""
        if self.process.poll() is None:
            other_clouds.collect(CHECKOUT / self.printed("logs"), stack_name(self.stage))
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE_SECONDS)
        end_session(self.process.pid)
        self.process.wait()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``hybrid-router`` with arguments."""
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
