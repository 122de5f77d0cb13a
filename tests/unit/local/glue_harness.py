"""Glue runs without the emulator."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from lake.engines.glue import LIVE_STATES
from local.glue_runs import GlueRuns
from local.isolation import AccessKey
from local.job_launch import JobSettings
from local.job_processes import JobProcesses
from local.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class GlueHarness:
    """Glue runs with scripts from a folder that takes the place of a bucket."""

    def __init__(
        self,
        folder: Path,
        minute_seconds: float = 60.0,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.records: list[dict] = []
        self.limits = limits or Limits()
        self.settings = JobSettings(
            "http://127.0.0.1:9",
            folder / "runs",
            folder / "logs",
            (),
            folder / "classes.jsa",
            lambda: self.limits,
            minute_seconds,
        )
        self.processes = JobProcesses()
        key = AccessKey("ASIAJOB", "secret", "token")
        self.runs = GlueRuns(self.settings, lambda *_: key, self._fetch, self._store, self.processes, clock)

    def _fetch(self, _access_key: AccessKey, bucket: str, key: str, target: Path) -> None:
        shutil.copy(self.folder / bucket / key, target)

    def _store(self, _access_key: AccessKey, file: Path, bucket: str, key: str) -> None:
        (self.folder / bucket / key).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, self.folder / bucket / key)

    def job(self, script: str, **properties) -> dict:
        (self.folder / "code").mkdir(exist_ok=True)
        (self.folder / "code" / "job.py").write_text(script)
        command = {"Name": properties.pop("kind", "glueetl"), "ScriptLocation": "s3://code/job.py"}
        workers = {"WorkerType": "G.1X", "NumberOfWorkers": 2}
        return {"Name": "job", "Role": "role", "Command": command, **workers, **properties}

    def run_to_end(self, job: dict, **request) -> dict:
        return self.wait_for_end(self.runs.start(job, request, self.records))

    def wait_for_end(self, run: dict) -> dict:
        deadline = time.monotonic() + 180
        while run["JobRunState"] in LIVE_STATES:
            assert time.monotonic() < deadline, run
            time.sleep(0.02)
        return run
