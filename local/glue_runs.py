"""Glue job runs on this machine: each is a real process, with Glue's states, limits and ways to end.

It is never more permissive than Glue: at StopJobRun, at the timeout and at the end of a streaming run's life, every
process of the run gets SIGKILL at once.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from lake.engines.glue import LIVE_STATES
from lake.engines.workers import DPUS
from local.errors import ConcurrentRunsExceededError, ResourceNumberLimitExceededError
from local.event_logs import store_event_logs
from local.glue_launch import glue_launch, merged_arguments
from local.job_launch import prepare
from local.run_log import last_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from local.job_launch import AssumeRole, Fetch, JobSettings, Store
    from local.job_processes import JobProcesses

SUCCEEDED = "SUCCEEDED"
NO_CAPACITY = "There is no spare capacity for a run of the execution class FLEX."
"""The words are not Glue's, which its pages do not tell."""
CAPACITY_POLL_SECONDS = 0.1
_BATCH_TIMEOUT_MINUTES = 480
"""Glue's default since version 5.0 (https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-job.html)."""
_MAX_STREAM_MINUTES = 14 * 24 * 60
"""Glue ends a streaming run after 14 days (https://docs.aws.amazon.com/glue/latest/dg/glue-streaming-maintenance.html)."""


class GlueRuns:
    """Starts, watches and ends runs; its methods may be called from several threads.

    A run's record is a dict like Glue's ``JobRun``, which is updated in place until the run has ended.
    """

    def __init__(
        self,
        settings: JobSettings,
        assume_role: AssumeRole,
        fetch: Fetch,
        store: Store,
        processes: JobProcesses,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._assume_role = assume_role
        self._fetch = fetch
        self._store = store
        self._lock = threading.Lock()
        self._processes = processes
        self._live: dict[str, dict[str, Any]] = {}
        """Records of all jobs' runs that have not ended."""

    def start(self, job: Mapping[str, Any], request: Mapping[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
        """Add a run to ``runs`` and start it; returns its record in state STARTING.

        Raises
        ------
        ConcurrentRunsExceededError
            The job already has MaxConcurrentRuns live runs (a STOPPING one is live); nothing was started.
        ResourceNumberLimitExceededError
            With this run the account would have more live runs, or more DPUs, than its quotas allow.
        """
        limit = int((job.get("ExecutionProperty") or {}).get("MaxConcurrentRuns") or 1)
        run = _new_record(job, request, self._clock())
        with self._lock:
            if sum(run["JobRunState"] in LIVE_STATES for run in runs) >= limit:
                raise ConcurrentRunsExceededError(f"Concurrent runs exceeded for {job['Name']}")
            self._check_quotas(run)
            runs.insert(0, run)
            self._live[run["Id"]] = run
        threading.Thread(target=self._run, args=(dict(job), run), daemon=True, name=run["Id"]).start()
        return run

    def _check_quotas(self, new: Mapping[str, Any]) -> None:
        limits, runs = self._settings.limits(), [*self._live.values(), new]
        if len(runs) > limits.glue_runs:
            message = f"Max concurrent job runs per account exceeded: {limits.glue_runs}"
            raise ResourceNumberLimitExceededError(message)
        if sum(map(_dpus, runs)) > limits.glue_dpus:
            raise ResourceNumberLimitExceededError(f"Max task DPUs per account exceeded: {limits.glue_dpus:g}")

    def stop(self, run: dict[str, Any]) -> bool:
        """Kill the run: it becomes STOPPING, and STOPPED when its processes have ended.

        Returns False and does nothing if the run is neither STARTING nor RUNNING.
        """
        with self._lock:
            if run["JobRunState"] not in ("STARTING", "RUNNING"):
                return False
            run["JobRunState"] = "STOPPING"
        self._processes.kill(run["Id"])
        return True

    def _run(self, job: Mapping[str, Any], run: dict[str, Any]) -> None:
        log_file = self._settings.logs / str(run["JobName"]) / f"{run['Id']}.log"
        log_file.parent.mkdir(parents=True, exist_ok=True)
        if not self._has_capacity(run):
            self._finish(job, run, "FAILED", NO_CAPACITY, self._clock())
            return
        began = self._clock()
        try:
            folder = self._settings.runs / str(run["Id"])
            folder.mkdir(parents=True)
            key = self._assume_role(str(job["Role"]), "glue.amazonaws.com", f"GlueJobRunnerSession-{run['Id'][:16]}")
            launch = glue_launch(job, run)
            launch_file = prepare(self._settings, folder, launch, key, self._fetch)
            self._processes.start(run["Id"], launch_file, log_file)
            state, message = self._watch(run, log_file)
            store_event_logs(launch, folder, key, self._store)
        except Exception as error:  # a state machine polls the run: it must reach a final state after any error
            state, message = "FAILED", f"LAUNCH ERROR | {type(error).__name__}: {error}"
        self._finish(job, run, state, message, began)

    def _has_capacity(self, run: dict[str, Any]) -> bool:
        """Wait, as a run of the class FLEX does, until AWS has spare capacity; False: it had none for too long."""
        end = time.monotonic() + self._settings.limits().flex_wait_minutes * self._settings.minute_seconds
        while run.get("ExecutionClass") == "FLEX" and not self._settings.limits().flex_capacity:
            with self._lock:
                if run["JobRunState"] == "STOPPING":
                    return True
                run["JobRunState"] = "WAITING"
            if time.monotonic() >= end:
                return False
            time.sleep(CAPACITY_POLL_SECONDS)
        return True

    def _watch(self, run: dict[str, Any], log_file: Path) -> tuple[str, str]:
        with self._lock:
            stopped = run["JobRunState"] == "STOPPING"
            if not stopped:
                run["JobRunState"] = "RUNNING"
        if stopped:
            self._processes.kill(run["Id"])
        minutes, state = _max_minutes(run)
        code = self._processes.wait(run["Id"], minutes * self._settings.minute_seconds)
        if code is None:
            return state, f"The run was ended after {minutes} minutes."
        if code == 0:
            return SUCCEEDED, ""
        return "FAILED", last_error(log_file, code)

    def _finish(self, job: Mapping[str, Any], run: dict[str, Any], state: str, message: str, began: float) -> None:
        """``began``: when it began to use workers."""
        now = self._clock()
        used = now - began if message != NO_CAPACITY else 0.0
        with self._lock:
            self._live.pop(run["Id"], None)
            stopped = run["JobRunState"] == "STOPPING"
            run["CompletedOn"] = run["LastModifiedOn"] = round(now, 3)
            run["ExecutionTime"] = math.ceil(used)
            if _has_dpu_seconds(job, run):
                # Of all workers: here one process stands in for them, and its clock for the bill.
                run["DPUSeconds"] = round(used * _dpus(run), 3)
            run["ErrorMessage"] = "" if stopped else message
            # Last: a caller that sees a final state reads the other fields.
            run["JobRunState"] = "STOPPED" if stopped else state


def find_run(runs: Sequence[dict[str, Any]], run_id: str) -> dict[str, Any] | None:
    """The record of the run with this id, or None."""
    return next((run for run in runs if run["Id"] == run_id), None)


def _has_dpu_seconds(job: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Glue reports them for batch runs of the class FLEX or with auto scaling, and for no streaming run
    (https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html)."""
    if job["Command"].get("Name") == "gluestreaming":
        return False
    return run.get("ExecutionClass") == "FLEX" or run["Arguments"].get("--enable-auto-scaling") == "true"


def _dpus(run: Mapping[str, Any]) -> float:
    if run.get("MaxCapacity"):
        return float(run["MaxCapacity"])
    return DPUS[str(run["WorkerType"])] * int(run["NumberOfWorkers"])


def _max_minutes(run: Mapping[str, Any]) -> tuple[int, str]:
    timeout = run.get("Timeout")
    if timeout:
        return int(timeout), "TIMEOUT"
    return _MAX_STREAM_MINUTES, "EXPIRED"


def _new_record(job: Mapping[str, Any], request: Mapping[str, Any], now: float) -> dict[str, Any]:
    """``now``: seconds since 1970."""
    now = round(now, 3)
    streaming = job["Command"].get("Name") == "gluestreaming"
    timeout = request.get("Timeout") or job.get("Timeout") or (None if streaming else _BATCH_TIMEOUT_MINUTES)
    copied = ("WorkerType", "NumberOfWorkers", "MaxCapacity", "GlueVersion", "ExecutionClass", "SecurityConfiguration")
    record = {
        "Id": f"jr_{uuid.uuid4().hex}{uuid.uuid4().hex}",
        "JobName": job["Name"],
        "Attempt": 0,
        "StartedOn": now,
        "LastModifiedOn": now,
        "JobRunState": "STARTING",
        "Arguments": merged_arguments(job, request),
        "PredecessorRuns": [],
        "ExecutionTime": 0,
        "LogGroupName": "/aws-glue/jobs",
    }
    if timeout:
        record["Timeout"] = int(timeout)
    settings = itertools.chain.from_iterable(
        ((key, source[key]) for key in copied if source.get(key)) for source in (job, request)
    )
    return record | dict(settings)
