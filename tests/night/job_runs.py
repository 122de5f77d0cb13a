"""The processes of job runs: stalled and killed, as a machine that fails does."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from lake.engines.glue import LIVE_STATES
from lake.ledger import State
from local.processes import kill_followers
from tests.e2e.waiting import wait_for
from tests.night.cloud import NightFailedError

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from lake.manifest import Lane


def working_run(stack: DeployedStack, lane: Lane) -> str:
    """Wait until a job run of the lane converts a manifest; returns the run's id."""

    def owner() -> str | None:
        return next((row.owner for row in stack.ledger.manifests.open(lane, State.RUNNING) if row.owner), None)

    return wait_for(f"a run of the {lane} lane to convert a manifest", owner)


def stall(run: str) -> None:
    """Stop every process of the run in the middle of its work (SIGSTOP)."""
    for pid in _members(_leader(run)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)


def kill(run: str) -> None:
    """Kill every process of the run (SIGKILL)."""
    kill_followers(_leader(run))


def wait_killed(stack: DeployedStack, job: str, run: str) -> None:
    """Wait for the end of a run that was killed.

    Raises ``NightFailedError``: it has ended by itself: there was nothing to repair.
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


def _members(leader: int) -> list[int]:
    found = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            # 0 would be this process.
            if pid not in (0, leader) and os.getsid(pid) == leader:
                found.append(pid)
    return found
