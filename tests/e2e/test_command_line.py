"""`hybrid-router local up` and the commands for it, run as a user runs them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.local_clouds import LocalStage, local_state
from infra.names import stack_name
from infra.synth import CHECKOUT
from local import isolation
from local.processes import end_session
from tests.e2e.permissions import collect
from tests.e2e.waiting import PATIENCE_SECONDS, wait_for

KEYS = ("orders/a b.ndjson", "orders/notes.txt")


class LocalUp:
    """A running ``hybrid-router local up``, whose stream lane gets urgent files only, at any time of day."""

    def __init__(self, folder: Path, stage: str) -> None:
        settings, self._log, self.stage = folder / f"{stage}.toml", folder / f"{stage}.log", stage
        settings.write_text(f'stage = "{stage}"\n[peak]\nhours = []\ndays = []\n')
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli", "local", "up", "--settings", str(settings)],
                cwd=CHECKOUT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ready(self) -> bool:
        """Whether it has deployed the stack and waits for Ctrl-C."""
        output = self._log.read_text()
        assert self.process.poll() is None, output
        return "Ctrl-C ends everything" in output

    @cached_property
    def state(self) -> Mapping[str, str]:
        """Endpoint, access key and logs; their file is deleted before the process ends."""
        return LocalStage(local_state(), self.stage).profile()

    def collect_permissions(self) -> None:
        collect(Path(self.state["hybrid_router_logs"]), stack_name(self.stage))

    def end(self) -> None:
        """End it as Ctrl-C does, so that it removes its files; kill it if it does not end in time."""
        if self.process.poll() is None:
            self.collect_permissions()
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE_SECONDS)
        end_session(self.process.pid)
        self.process.wait()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``hybrid-router`` with arguments."""
    words = [sys.executable, "-m", "cli", *arguments]
    return subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LocalUp]]:
    """Two local clouds that run at the same time, both ready."""
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
    # Given a file to convert and a file that is ignored.
    first, second = two
    bucket = command("outputs", "InputBucket", "--local", "--stage", first.stage).stdout.strip()
    access_key = isolation.AccessKey(first.state["aws_access_key_id"], first.state["aws_secret_access_key"])
    s3 = isolation.client("s3", first.state["endpoint_url"], access_key)
    for key in KEYS:
        s3.put_object(Bucket=bucket, Key=key, Body=b'{"a":1}\n')

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
    elsewhere = explain(KEYS[0], second.stage)
    assert elsewhere.returncode == ExitCode.NEGATIVE
    assert "is not in the input bucket s3://" in elsewhere.stderr
    assert "Traceback" not in elsewhere.stderr


def test_ctrl_c_ends_its_own_cloud_only_and_down_the_other(two: list[LocalUp]) -> None:
    """Runs last in this file: it ends both clouds."""
    first, second = two
    os.kill(first.process.pid, signal.SIGINT)
    wait_for("the first cloud to end", lambda: first.process.poll() is not None)
    assert command("status", "--local", "--stage", first.stage).returncode == ExitCode.NOT_REACHABLE
    assert command("status", "--local", "--stage", second.stage).returncode == 0
    # When the other cloud is ended
    second.collect_permissions()
    answer = command("local", "down", "--stage", second.stage)
    # Then nothing is left
    assert answer.stdout.startswith(f"no local cloud of stage {second.stage} is running; "), answer.stderr
    assert [path for item in two for path in local_state().glob(f"{item.stage}[-.]*") if path.suffix != ".lock"] == []
