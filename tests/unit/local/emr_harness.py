"""Job runs of EMR Serverless with scripts from a folder, for the tests of the local cloud's own."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

from lake.engines.emr_serverless import TERMINAL_STATES
from local.emr_runs import EmrRuns
from local.isolation import AccessKey
from local.job_launch import JobSettings
from local.job_processes import JobProcesses

if TYPE_CHECKING:
    from pathlib import Path

HANGING = "import time; time.sleep(600)"
SMALL = "--conf spark.driver.cores=1 --conf spark.driver.memory=2g --conf spark.executor.cores=1 "
SMALL += "--conf spark.executor.memory=1g --conf spark.executor.memoryOverhead=1g "
SMALL += "--conf spark.dynamicAllocation.maxExecutors=1"
"""A run of 2 vCPUs and 4 GB."""


class EmrHarness:
    """Job runs with scripts from a folder that takes the place of a bucket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes = JobProcesses()
        self.services: list[str] = []
        settings = JobSettings(
            "http://127.0.0.1:9", folder / "runs", folder / "logs", (), folder / "classes.jsa", minute_seconds=0.5
        )
        self.runs = EmrRuns(settings, self._assume_role, self._fetch, self._store, self.processes)
        self.application: dict[str, Any] = {
            "applicationId": "00app",
            "arn": "arn:aws:emr-serverless:eu-central-1:111122223333:/applications/00app",
            "name": "batch",
            "releaseLabel": "emr-spark-8.1.0",
        }

    def _assume_role(self, _role: str, service: str, _session: str) -> AccessKey:
        self.services.append(service)
        return AccessKey("ASIAJOB", "secret", "token")

    def _fetch(self, _key: AccessKey, bucket: str, key: str, target: Path) -> None:
        shutil.copy(self.folder / bucket / key, target)

    def _store(self, _key: AccessKey, file: Path, bucket: str, key: str) -> None:
        (self.folder / bucket / key).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, self.folder / bucket / key)

    def request(self, script: str, parameters: str = SMALL, **fields: Any) -> dict[str, Any]:
        (self.folder / "code").mkdir(exist_ok=True)
        name = f"job{len(list((self.folder / 'code').iterdir()))}.py"
        (self.folder / "code" / name).write_text(script)
        submit = {"entryPoint": f"s3://code/{name}", "entryPointArguments": ["--run", "x"]}
        driver = {"sparkSubmit": {**submit, "sparkSubmitParameters": parameters}}
        return {"executionRoleArn": "role", "jobDriver": driver, **fields}

    def start(self, script: str, **fields: Any) -> dict[str, Any]:
        return self.runs.start(self.application, self.request(script, **fields))

    def reach(self, run: dict[str, Any], *states: str) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while run["state"] not in states:
            assert run["state"] not in TERMINAL_STATES, run
            assert time.monotonic() < deadline, run
            time.sleep(0.01)
        return run
