"""What all job runs have in common: a role, files, a process, an end."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.job_launch import AssumeRole, Fetch, JobLaunch, JobProcesses, JobSettings, prepare


class JobRuns:
    """Base of the job runs of a service; its methods may be called from several threads."""

    def __init__(
        self,
        settings: JobSettings,
        assume_role: AssumeRole,
        fetch: Fetch,
        processes: JobProcesses,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._assume_role = assume_role
        self._fetch = fetch
        self._processes = processes
        self._clock = clock
        self._lock = threading.RLock()

    def log_file(self, job: str, run: str) -> Path:
        """What a run prints; ``job``: the name of its job, or of its application."""
        return self._settings.logs / job / f"{run}.log"

    def _begin(self, run: str, work: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
        threading.Thread(target=work, args=arguments, daemon=True, name=run).start()

    def _execute(
        self,
        run: str,
        launch: JobLaunch,
        role: tuple[str, str, str],
        log_file: Path,
        minutes: float,
        begins: Callable[[], bool],
    ) -> int | None:
        """Run the process of ``launch`` to its end; its exit code, or None if it was killed after ``minutes``.

        ``role``: ARN of the run's role, the service that assumes it, and the name of the session. ``begins``: called
        when the process has started; False: the run was stopped before, and is killed. Raises ``Exception``: the role
        may not be assumed, or its files could not be read.
        """
        log_file.parent.mkdir(parents=True, exist_ok=True)
        folder = self._settings.runs / run
        folder.mkdir(parents=True)
        key = self._assume_role(*role)
        self._processes.start(run, prepare(self._settings, folder, launch, key, self._fetch), log_file)
        if not begins():
            self._processes.kill(run)
        return self._processes.wait(run, minutes * self._settings.minute_seconds)
