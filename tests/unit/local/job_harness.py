"""Job runs without the emulator, with scripts from a folder that takes the place of a bucket."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.isolation import AccessKey
from local.job_launch import JobProcesses, JobRuns, JobSettings
from local.limits import Limits
from tests.e2e.waiting import wait_for

HANGING = "import time; time.sleep(600)"


class JobHarness:
    """The job runs of one service."""

    def __init__(
        self,
        kind: type[JobRuns],
        folder: Path,
        minute_seconds: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.limits = Limits()
        self.records: list[dict[str, Any]] = []
        """Records of the runs of a Glue job."""
        self.processes = JobProcesses()
        self.settings = JobSettings(
            "http://127.0.0.1:9",
            folder / "runs",
            folder / "logs",
            (),
            folder / "classes.jsa",
            lambda: self.limits,
            minute_seconds,
        )
        key = AccessKey("ASIAJOB", "secret", "token")
        self.runs: Any = kind(self.settings, lambda *_role: key, self._fetch, self.processes, clock)

    def _fetch(self, _key: AccessKey, bucket: str, key: str, target: Path) -> None:
        shutil.copy(self.folder / bucket / key, target)

    def script(self, text: str) -> str:
        """URI of a new script."""
        (self.folder / "code").mkdir(exist_ok=True)
        name = f"job{len(list((self.folder / 'code').iterdir()))}.py"
        (self.folder / "code" / name).write_text(text)
        return f"s3://code/{name}"

    def log(self, run: str) -> str:
        (file,) = self.settings.logs.rglob(f"{run}.log")
        return file.read_text()


def reach(run: dict[str, Any], key: str, *states: str) -> dict[str, Any]:
    """Wait until the record has one of these states under ``key``."""
    wait_for(f"one of {states}", lambda: run[key] in states)
    return run
