"""The processes of job runs on this machine: each run is a session of its own, led by ``local.job_child``."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from local.processes import end_session, kill_session

_CHECKOUT = Path(__file__).resolve().parents[1]


class JobProcesses:
    """Starts, watches and kills them; its methods may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, run: str, launch_file: Path, log_file: Path) -> None:
        """Start the run's first process, which does what ``launch_file`` says; its output goes to ``log_file``."""
        with log_file.open("wb") as log, self._lock:
            self._processes[run] = subprocess.Popen(
                [sys.executable, "-m", "local.job_child", str(launch_file)],
                cwd=_CHECKOUT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, run: str, seconds: float) -> int | None:
        """Wait for the end of a started run, at most ``seconds``; its exit code, or None if it had to be killed then.

        What the script has left behind ends with it, as in the cloud, where the machines of a run are released.
        """
        process = self._processes[run]
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            kill_session(process.pid)
            process.wait()
            return None
        finally:
            end_session(process.pid)
            if process.stdin is not None:
                process.stdin.close()
            with self._lock:
                del self._processes[run]

    def kill(self, run: str) -> None:
        """Kill every process of the run, if it has been started and has not ended."""
        with self._lock:
            process = self._processes.get(run)
        if process is not None:
            kill_session(process.pid)

    def kill_all(self) -> None:
        """Kill every run and wait for the end of its processes; the local cloud ends with it."""
        with self._lock:
            processes = list(self._processes.values())
        for process in processes:
            kill_session(process.pid)
        for process in processes:
            end_session(process.pid)
