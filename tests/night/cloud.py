"""The local cloud of the night, the command line that a person runs on it, and the processes of its job runs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil

from cli.deployed_stack import DeployedStack
from infra.synth import CHECKOUT
from lake.engines.glue import LIVE_STATES
from lake.ledger import State
from lake.manifest import Lane
from lake.settings import (
    BatchSettings,
    DatasetRule,
    InputSettings,
    PeakSettings,
    PriceSettings,
    ScheduleSettings,
    Settings,
    StreamSettings,
    SweepSettings,
    TablesSettings,
)
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE
from local.processes import kill_followers
from tests.e2e.scenario import Scenario
from tests.e2e.waiting import wait_for
from tests.night.files import FOLDERS, Day, Part

PEAK = FOLDERS[Part.PEAK]
STAGE, BUCKET, TIME_ZONE = "night", "landing-zone", "Europe/Berlin"


class NightFailedError(AssertionError):
    """An expectation of the day or the night is not met."""


@dataclass(frozen=True, slots=True)
class Night:
    scenario: Scenario
    settings: Settings
    folder: Path
    """Commands run in it: exports and pages of reports are written there."""
    log: Callable[[str], None]
    """Prints the progress."""

    @property
    def stack(self) -> DeployedStack:
        return self.scenario.deployment

    def command(self, *arguments: str, code: int = 0) -> str:
        """Run ``hybrid-router`` as a person does; return its output.

        Raises ``NightFailedError`` if it ends with another exit code.
        """
        place = ("--local", "--stage", STAGE)
        answer = subprocess.run(
            [sys.executable, "-m", "cli", *arguments, *place],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != code:
            output = f"{answer.stdout}{answer.stderr}".strip()
            raise NightFailedError(f"hybrid-router {' '.join(arguments)} ended with {answer.returncode}: {output}")
        return answer.stdout

    def document(self, *arguments: str, code: int = 0) -> Any:
        """The output of the command with ``--json``; raises the same errors as ``command``."""
        return json.loads(self.command(*arguments, "--json", code=code))


@contextmanager
def running_night(folder: Path, day: Day, log: Callable[[str], None]) -> Iterator[Night]:
    settings = night_settings(len(day.files), day.tables)
    with LocalCloud.start(folder / "cloud") as cloud:
        cloud.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=BUCKET_PLACE)
        scenario = Scenario.deploy(cloud, settings, folder / "cdk.out")
        os.environ["XDG_STATE_HOME"] = str(folder)
        scenario.leave_local_state(STAGE)
        try:
            yield Night(scenario, settings, folder, log)
        except BaseException:
            _keep_ledger(cloud, scenario.deployment.resources.ledger_table, folder / "ledger.jsonl")
            raise


def night_settings(files: int, tables: Sequence[str]) -> Settings:
    """Peak hours all day for one dataset, short waits, and about four runs of the batch lane for the files of the day.

    ``tables`` are the datasets with an Iceberg table, whose earlier snapshots are not kept.
    The input bucket has no versions: the same file, put again with the same bytes, is the same arrival.
    """
    now = datetime.now(ZoneInfo(TIME_ZONE))
    later, earlier = (f"{now + timedelta(hours=12):%H:%M}", f"cron({now - timedelta(hours=2):%-M %-H} * * ? *)")
    manifest_files = max(files // 20, 4)
    return Settings(
        stage=STAGE,
        time_zone=TIME_ZONE,
        input=InputSettings(bucket=BUCKET),
        datasets=(
            *(DatasetRule(name, f"{name}/", peak=name == PEAK, table="iceberg") for name in tables),
            DatasetRule("{folder}", peak=False),
        ),
        peak=PeakSettings(hours=("00:00-24:00",), days=("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
        stream=StreamSettings(
            trigger_seconds=1,
            manifest_files=max(files // 100, 4),
            # The peak files of a stalled run take longer.
            latency_goal_seconds=1,
            max_workers=2,
        ),
        # For small files; with large files it is 400 times as much.
        price=PriceSettings(mb_per_second_per_core=0.1, compressed_mb_per_second_per_core=0.1),
        batch=BatchSettings(
            # A denied manifest ends its run after two rounds.
            max_attempts=2,
            lease_seconds=60,
            manifest_files=manifest_files,
            max_runs=2,
            engines=("glue-flex", "glue"),
        ),
        # Only this program starts a night or a window.
        schedule=ScheduleSettings(
            overnight=earlier, deadline=later, stream_start="cron(0 0 1 1 ? *)", stream_end=later, watch_seconds=2
        ),
        sweep=SweepSettings(grace_minutes=0),
        tables=TablesSettings(keep_hours=0),
    )


def _keep_ledger(cloud: LocalCloud, table: str, path: Path) -> None:
    """The cloud keeps its ledger in memory, and a person needs it after a failure."""
    pages = cloud.client("dynamodb").get_paginator("scan").paginate(TableName=table)
    with path.open("w", encoding="utf-8") as file:
        for page in pages:
            file.writelines(f"{json.dumps(item, default=str)}\n" for item in page["Items"])


def working_run(stack: DeployedStack, lane: Lane) -> str:
    """Wait until a job run of the lane converts a manifest; returns the run's id."""

    def owner() -> str | None:
        return next((row.owner for row in stack.ledger.manifests.open(lane, State.RUNNING) if row.owner), None)

    return wait_for(f"a run of the {lane} lane to convert a manifest", owner)


def stall(run: str) -> None:
    """Stop every process of the run in the middle of its work (SIGSTOP)."""
    for process in psutil.Process(_leader(run)).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.suspend()


def kill(run: str) -> None:
    kill_followers(_leader(run))


def wait_killed(stack: DeployedStack, job: str, run: str) -> None:
    """Wait for the end of a run that was killed.

    Raises ``NightFailedError`` if it ended by itself, so that nothing had to be repaired.
    """

    def ended() -> dict | None:
        record = stack.glue.get_job_run(JobName=job, RunId=run)["JobRun"]
        return None if record["JobRunState"] in LIVE_STATES else record

    record = wait_for(f"the end of {run}", ended)
    if record["JobRunState"] != "FAILED" or "SIGKILL" not in record["ErrorMessage"]:
        raise NightFailedError(f"{run} was to be killed, but ended {record['JobRunState']}: {record['ErrorMessage']}")


def _leader(run: str) -> int:
    """The process that leads the session of the run (``local/job_child.py``)."""
    for process in psutil.process_iter(["cmdline"]):
        arguments = process.info["cmdline"] or []
        if "local.job_child" in arguments and run in arguments[-1]:
            return int(process.pid)
    raise NightFailedError(f"no process of {run} is alive: it ended before it could be stalled or killed")
