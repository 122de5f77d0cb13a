"""The local cloud: the whole of AWS that the product uses, on this machine, reachable on loopback only."""

from __future__ import annotations

import fcntl
import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from local import isolation, spark_jars
from local.deploy import deploy_assembly
from local.emulator_process import EmulatorSettings, emulator_environment
from local.errors import LocalCloudError
from local.processes import end_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_CHECKOUT = Path(__file__).resolve().parents[1]
_OWN_FOLDERS = ("s3", "runs", "tmp", "emulator", "lambda-runtime")
_START_SECONDS = 60
_STOP_SECONDS = 10
_LOG_TAIL_CHARACTERS = 4000


class LocalCloud:
    """A running local cloud; made by :meth:`start`, ended by leaving its ``with`` block or by :meth:`close`.

    If the owning process dies, in whatever way, everything the cloud started dies with it.
    """

    def __init__(self, state_dir: Path, port: int, process: subprocess.Popen[bytes], resources: ExitStack) -> None:
        self.state_dir = state_dir
        self.logs_dir = state_dir / "logs"
        self.endpoint = f"http://127.0.0.1:{port}"
        self.environment = isolation.isolated_environment(self.endpoint)
        self._port = port
        self._process = process
        self._resources = resources
        self._clients: dict[str, isolation.AwsClient] = {}
        self._clients_lock = threading.Lock()

    @classmethod
    def start(
        cls,
        state_dir: Path,
        *,
        log: Callable[[str], None] = lambda _: None,
        glue_minute_seconds: float = 60.0,
        jars_cache: Path = spark_jars.DEFAULT_CACHE,
    ) -> LocalCloud:
        """Start an empty local cloud on a free port, with its files below ``state_dir``.

        Parameters
        ----------
        state_dir
            Belongs to the cloud: what an earlier one left there, apart from its logs, is removed.
        log
            Gets one line per step of progress.
        glue_minute_seconds
            How long a minute of a Glue job's timeout lasts, in seconds.
        jars_cache
            Where Spark's S3 jars are kept between starts.

        Raises
        ------
        LocalCloudError
            Another local cloud uses ``state_dir``, or the emulator did not start; the message ends with its log.
        """
        state_dir = state_dir.resolve()
        with ExitStack() as resources:
            resources.enter_context(_claimed(state_dir))
            jars = spark_jars.resolve(jars_cache, log)
            _empty(state_dir)
            listener = resources.enter_context(closing(_loopback_listener()))
            port = int(listener.getsockname()[1])
            log(f"starting the local cloud on 127.0.0.1:{port}")
            settings = EmulatorSettings(
                listener.fileno(), port, str(state_dir), tuple(map(str, jars)), glue_minute_seconds
            )
            cloud = cls(state_dir, port, _spawn(settings, state_dir), resources.pop_all())
        try:
            cloud._wait_until_healthy()
        except BaseException:
            cloud.close()
            raise
        listener.close()
        return cloud

    def client(self, service: str) -> isolation.AwsClient:
        """The boto3 client of this cloud for ``service``, whatever AWS profile or environment the person has.

        One per service, usable from several threads; so its exception classes are the same wherever it is asked for.
        """
        with self._clients_lock:
            if service not in self._clients:
                self._clients[service] = isolation.client(service, self.endpoint)
            return self._clients[service]

    def deploy(self, cdk_out: Path) -> dict[str, str]:
        """Deploy what ``cdk synth`` wrote to ``cdk_out``, unchanged; returns the outputs of its stacks.

        Raises
        ------
        LocalCloudError
            A stack failed; the message names the resource and the reason.
        """
        return deploy_assembly(self.client, cdk_out)

    def wait(self) -> int:
        """Block until the emulator ends; its exit code."""
        return self._process.wait()

    def close(self) -> None:
        """End everything that this cloud started, and only that. Safe to call twice."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        end_session(self._process.pid)
        self._process.wait()
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not _healthy(self._port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                log_file = self.logs_dir / "emulator.log"
                tail = log_file.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:]
                raise LocalCloudError(f"The local cloud did not start; the end of {log_file} says:\n{tail}")
            time.sleep(0.05)


def _claimed(state_dir: Path) -> IO[str]:
    state_dir.mkdir(parents=True, exist_ok=True)
    lock = (state_dir / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LocalCloudError(
            f"Another local cloud is running in {state_dir}: stop it, or give this one a folder of its own."
        ) from None
    return lock


def _empty(state_dir: Path) -> None:
    for name in _OWN_FOLDERS:
        shutil.rmtree(state_dir / name, ignore_errors=True)
        (state_dir / name).mkdir()
    (state_dir / "logs").mkdir(exist_ok=True)


def _loopback_listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    return listener


def _spawn(settings: EmulatorSettings, state_dir: Path) -> subprocess.Popen[bytes]:
    settings_file = state_dir / "emulator" / "settings.json"
    settings_file.write_text(json.dumps(asdict(settings)))
    with (state_dir / "logs" / "emulator.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "local.emulator_process", str(settings_file)],
            cwd=_CHECKOUT,
            env=emulator_environment(settings.port, state_dir),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(settings.socket,),
            start_new_session=True,
        )


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/_ministack/health")
        return connection.getresponse().status == http.client.OK
    return False
