"""Job runs of EMR Serverless on this machine: each is a real process, with the service's states, limits and ends."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from lake.engines.emr_serverless import APPLICATION_VARIABLE, JOB_RUN_VARIABLE, TERMINAL_STATES
from lake.engines.stream_launch import STREAMING
from local.emr_launch import emr_launch, needed_capacity, spark_properties
from local.errors import ServiceError
from local.event_logs import store_event_logs
from local.job_launch import prepare
from local.run_log import last_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from local.emr_launch import Capacity
    from local.job_launch import AssumeRole, Fetch, JobSettings, Store
    from local.job_processes import JobProcesses

SUCCESS = "SUCCESS"
_WITH_WORKERS = frozenset({"SCHEDULED", "RUNNING", "CANCELLING"})
_DEFAULT_MINUTES = 720
"""Default of executionTimeoutMinutes; 0 means no limit (EMR Serverless API Reference, StartJobRun)."""
_MAX_MINUTES = 1_000_000
_DEFAULT_QUEUE_MINUTES = 360
"""Default of an application's queue (EMR Serverless API Reference, SchedulerConfiguration)."""
_DEFAULT_FAILED_ATTEMPTS, _MAX_FAILED_ATTEMPTS = 5, 10
"""Failed attempts of a streaming run in an hour, here in its whole time, after which it is not retried: one means no
retries (Amazon EMR Serverless User Guide, "Job resiliency")."""
_GRACE_SECONDS = (0, *range(15, 1801))
"""Allowed of shutdownGracePeriodInSeconds (the same guide, "Job run cancellation with grace period")."""
_MAX_DETAILS = 256
"""Characters of stateDetails (the same, JobRun)."""


class EmrRuns:
    """Starts, watches and ends job runs; its methods may be called from several threads.

    A run's record is a dict like the service's ``JobRun``, which is updated in place until the run has ended.
    """

    def __init__(
        self, settings: JobSettings, assume_role: AssumeRole, fetch: Fetch, store: Store, processes: JobProcesses
    ) -> None:
        self._settings = settings
        self._assume_role = assume_role
        self._fetch = fetch
        self._store = store
        self._processes = processes
        self._changed = threading.Condition()
        self._runs: dict[str, dict[str, Any]] = {}
        self._needed: dict[str, Capacity] = {}
        """By job run."""
        self._tokens: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = {}
        """Application and client token -> the request and its job run."""

    def start(self, application: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
        """Start a job run; returns its record. A request with the client token of an earlier one finds its run.

        ``application`` and ``request`` are like those of the service's API.

        Raises
        ------
        ServiceError
            ``ValidationException``: the request is not valid. ``ConflictException``: its client token is that of
            another request.
        """
        needed = needed_capacity(spark_properties(request))
        if not 1 <= _failed_attempts(request) <= _MAX_FAILED_ATTEMPTS:
            raise ServiceError("ValidationException", "maxFailedAttemptsPerHour must be from 1 to 10")
        token = (application["applicationId"], str(request.get("clientToken") or uuid.uuid4()))
        with self._changed:
            known = self._tokens.get(token)
            if known is not None:
                if known[0] != request:
                    raise ServiceError("ConflictException", f"The client token {token[1]} is that of another request")
                return self._runs[known[1]]
            run = _new_record(application, request)
            self._tokens[token] = (dict(request), run["jobRunId"])
            self._runs[run["jobRunId"]] = run
            self._needed[run["jobRunId"]] = needed
        arguments = (dict(application), dict(request), run)
        threading.Thread(target=self._run, args=arguments, daemon=True, name=run["jobRunId"]).start()
        return run

    def find(self, application: str, job_run: str) -> dict[str, Any]:
        """The record of a job run; raises ``ServiceError``: ``ResourceNotFoundException``."""
        run = self._runs.get(job_run)
        if run is None or run["applicationId"] != application:
            raise ServiceError("ResourceNotFoundException", f"Job run {job_run} does not exist")
        return run

    def of(self, application: str, states: Collection[str] = (), mode: str = "") -> list[dict[str, Any]]:
        """The records of the job runs of an application, the newest first; empty ``states`` and ``mode``: of all."""
        with self._changed:
            runs = [run for run in self._runs.values() if run["applicationId"] == application]
        return [
            run for run in reversed(runs) if run["state"] in (states or {run["state"]}) and mode in ("", run["mode"])
        ]

    def cancel(self, run: dict[str, Any], grace_seconds: int = 0) -> None:
        """Kill the run: it becomes CANCELLING, and CANCELLED when its processes have ended; nothing if it has ended.

        A run gets no time to end by itself, whatever ``grace_seconds`` are: no job here depends on it.

        Raises
        ------
        ServiceError
            ``ValidationException``: the grace period is not valid.
        """
        if grace_seconds not in _GRACE_SECONDS:
            raise ServiceError("ValidationException", "shutdownGracePeriodInSeconds must be 0, or from 15 to 1800")
        with self._changed:
            if run["state"] in TERMINAL_STATES:
                return
            self._set(run, "CANCELLING")
        self._processes.kill(run["jobRunId"])

    def _run(self, application: Mapping[str, Any], request: Mapping[str, Any], run: dict[str, Any]) -> None:
        try:
            state, details = self._wait_for_room(application, run) or self._attempts(application, request, run)
        except Exception as error:  # a state machine polls the run: it must reach a final state after any error
            state, details = "FAILED", f"{type(error).__name__}: {error}"
        with self._changed:
            cancelled = run["state"] == "CANCELLING"
            run["stateDetails"] = "" if cancelled else details[:_MAX_DETAILS]
            run["endedAt"] = time.time()
            if "startedAt" in run:
                run |= _used(self._needed[run["jobRunId"]], run["endedAt"] - run["startedAt"])
            self._set(run, "CANCELLED" if cancelled else state)

    def _wait_for_room(self, application: Mapping[str, Any], run: dict[str, Any]) -> tuple[str, str] | None:
        """None if the run has got its workers; its end otherwise."""
        queue = application.get("schedulerConfiguration")
        minutes = (queue or {}).get("queueTimeoutMinutes", _DEFAULT_QUEUE_MINUTES)
        deadline = time.monotonic() + minutes * self._settings.minute_seconds
        with self._changed:
            while run["state"] != "CANCELLING":
                if self._has_room(application, run):
                    self._set(run, "SCHEDULED")
                    return None
                if queue is None:
                    return "FAILED", "Worker could not be allocated as the application has exceeded maximumCapacity"
                self._set(run, "QUEUED")
                if not self._changed.wait(deadline - time.monotonic()):
                    return "FAILED", f"The job run waited {minutes} minutes in the queue"
        return "CANCELLED", ""

    def _has_room(self, application: Mapping[str, Any], new: dict[str, Any]) -> bool:
        runs = [run for run in self.of(application["applicationId"]) if run["state"] in _WITH_WORKERS]
        queue, maximum = application.get("schedulerConfiguration") or {}, application.get("maximumCapacity")
        if len(runs) >= queue.get("maxConcurrentRuns", len(runs) + 1):
            return False
        if maximum is None:
            return True
        used = [self._needed[run["jobRunId"]] for run in (*runs, new)]
        return sum(item.vcpus for item in used) <= _number(maximum["cpu"]) and sum(
            item.gigabytes for item in used
        ) <= _number(maximum["memory"])

    def _attempts(
        self, application: Mapping[str, Any], request: Mapping[str, Any], run: dict[str, Any]
    ) -> tuple[str, str]:
        """Every attempt of the run, one after the other; the end of the last one."""
        while True:
            state, details = self._execute(application, request, run)
            if state != "FAILED" or run["mode"] != STREAMING or run["attempt"] >= _failed_attempts(request):
                return state, details
            run["attempt"] += 1

    def _execute(
        self, application: Mapping[str, Any], request: Mapping[str, Any], run: dict[str, Any]
    ) -> tuple[str, str]:
        own = {JOB_RUN_VARIABLE: run["jobRunId"], APPLICATION_VARIABLE: run["applicationId"]}
        name = str(run["jobRunId"]) if run["attempt"] == 1 else f"{run['jobRunId']}-attempt-{run['attempt']}"
        log_file: Path = self._settings.logs / str(application["name"]) / f"{name}.log"
        log_file.parent.mkdir(parents=True, exist_ok=True)
        folder = self._settings.runs / name
        folder.mkdir(parents=True)
        key = self._assume_role(str(request["executionRoleArn"]), "emr-serverless.amazonaws.com", run["jobRunId"])
        launch = emr_launch(request, own, run["attempt"])
        launch_file = prepare(self._settings, folder, launch, key, self._fetch)
        self._processes.start(run["jobRunId"], launch_file, log_file)
        run.setdefault("startedAt", time.time())
        with self._changed:
            cancelled = run["state"] == "CANCELLING"
            if not cancelled:
                self._set(run, "RUNNING")
        if cancelled:
            self._processes.kill(run["jobRunId"])
        minutes = request.get("executionTimeoutMinutes", _DEFAULT_MINUTES) or _MAX_MINUTES
        code = self._processes.wait(run["jobRunId"], minutes * self._settings.minute_seconds)
        store_event_logs(launch, folder, key, self._store)
        if code is None:
            return "CANCELLED", f"The job run was cancelled after its execution timeout of {minutes} minutes"
        if code == 0:
            return SUCCESS, ""
        return "FAILED", f"Job failed, ExitCode: {code}. Last few exceptions: {last_error(log_file, code)}"

    def _set(self, run: dict[str, Any], state: str) -> None:
        run["updatedAt"] = time.time()
        if run["state"] != state:
            # Last: a caller that sees a final state reads the other fields.
            run["state"] = state
            self._changed.notify_all()


def _new_record(application: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    now, job_run = time.time(), f"00{uuid.uuid4().hex[:14]}"
    copied = ("name", "jobDriver", "configurationOverrides", "executionTimeoutMinutes", "retryPolicy")
    return {
        "applicationId": application["applicationId"],
        "jobRunId": job_run,
        "arn": f"{application['arn']}/jobruns/{job_run}",
        "createdBy": request["executionRoleArn"],
        "createdAt": now,
        "updatedAt": now,
        "executionRole": request["executionRoleArn"],
        "state": "SUBMITTED",
        "stateDetails": "",
        "releaseLabel": application["releaseLabel"],
        "mode": request.get("mode", "BATCH"),
        "attempt": 1,
        **{key: request[key] for key in copied if key in request},
    }


def _failed_attempts(request: Mapping[str, Any]) -> int:
    """Failed attempts after which a streaming run is not retried."""
    return int((request.get("retryPolicy") or {}).get("maxFailedAttemptsPerHour", _DEFAULT_FAILED_ATTEMPTS))


def _used(capacity: Capacity, seconds: float) -> dict[str, Any]:
    """What a run is billed: all of its workers, of which one process takes the place here, by the clock."""
    hours = seconds / 3600
    billed = {"vCPUHour": capacity.vcpus * hours, "memoryGBHour": capacity.gigabytes * hours, "storageGBHour": 0.0}
    return {"totalExecutionDurationSeconds": int(seconds), "billedResourceUtilization": billed}


def _number(quantity: str) -> int:
    """``400 vCPU`` -> 400."""
    return int(quantity.partition(" ")[0])
