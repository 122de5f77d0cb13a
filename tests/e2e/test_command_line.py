"""`hybrid-router local up` and the commands for it, run as a user runs them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.local_clouds import local_state
from infra.names import stack_name
from infra.synth import CHECKOUT
from local import isolation
from local.processes import end_session
from tests.e2e.permissions import collect
from tests.e2e.waiting import PATIENCE_SECONDS, wait_for

KEYS = ("orders/a b.ndjson", "orders/notes.txt")


READY = "Ctrl-C ends everything"
SETTINGS = "[peak]\nhours = []\ndays = []\n"
"""Without peak hours only urgent files go to the stream lane, at any time of day."""


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
            collect(CHECKOUT / self.printed("logs"), stack_name(self.stage))
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


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LocalUp]]:
    """Two local clouds that run at once, both ready."""
    folder = tmp_path_factory.mktemp("up")
    running = [LocalUp(folder, "cli_one"), LocalUp(folder, "cli_two")]
    try:
        for item in running:
            wait_for(f"local up of {item.stage}", item.ready)
        yield running
    finally:
        for item in running:
            item.end()


def test_explain_follows_a_file(two: list[LocalUp]) -> None:
    # Given a file to convert and one that is ignored.
    first, second = two
    bucket = first.printed("InputBucket")
    s3 = first.client("s3")
    s3.put_object(Bucket=bucket, Key="orders/a b.ndjson", Body=b'{"a":1}\n')
    s3.put_object(Bucket=bucket, Key="orders/notes.txt", Body=b"hello")

    def explain(key: str, stage: str) -> subprocess.CompletedProcess[str]:
        return command("explain", "--local", "--stage", stage, f"s3://{bucket}/{key}")

    # When they have been routed, then explain prints lane, reason and state.
    wait_for("both to be routed", lambda: all(explain(key, first.stage).returncode == 0 for key in KEYS))
    to_convert, ignored = (explain(key, first.stage).stdout for key in KEYS)
    assert "batch" in to_convert
    assert "COLLECTED" in to_convert
    assert "IGNORED" in ignored
    assert "input.suffixes" in ignored
    # And the other cloud does not know them: one sentence, no stack trace.
    elsewhere = explain("orders/a b.ndjson", second.stage)
    assert elsewhere.returncode == ExitCode.NOT_SO
    assert "is not in the input bucket s3://" in elsewhere.stderr
    assert "Traceback" not in elsewhere.stderr


def test_ctrl_c_ends_its_own_cloud_only(two: list[LocalUp]) -> None:
    """Runs last but one in this file: it ends the first cloud."""
    first, second = two
    os.kill(first.process.pid, signal.SIGINT)
    wait_for("the first cloud to end", lambda: first.process.poll() is not None)
    assert command("status", "--local", "--stage", first.stage).returncode == ExitCode.NOT_REACHABLE
    assert command("status", "--local", "--stage", second.stage).returncode == 0


def test_down_ends_a_cloud_and_nothing_is_left(two: list[LocalUp]) -> None:
    """Runs last in this file: it ends the second cloud."""
    collect(CHECKOUT / two[1].printed("logs"), stack_name(two[1].stage))
    answer = command("local", "down", "--stage", two[1].stage)
    assert answer.stdout.startswith(f"no local cloud of stage {two[1].stage} is running; "), answer.stderr
    assert [path for item in two for path in local_state().glob(f"{item.stage}[-.]*") if path.suffix != ".lock"] == []
