"""Glue on this machine: each job run is a real process, with Glue's states, limits and ways to end.

At StopJobRun, at the timeout and at the end of a streaming run's life, every process of the run gets SIGKILL at once.
"""

import json
import math
import sys
import time
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from ministack.services import glue, stepfunctions  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from lake.engines.glue import LIVE_STATES, dpus_of
from local.emulator_patches import EmulatorValue, Original, state_machines, wrap
from local.emulator_patches.state_machines import Right, Rights
from local.errors import ServiceError
from local.isolation import ACCOUNT, REGION
from local.job_launch import JobLaunch, JobRuns
from local.limits import Limits

SERVICE = "glue.amazonaws.com"
SUCCEEDED = "SUCCEEDED"
NO_CAPACITY = "There is no spare capacity for a run of the execution class FLEX."
"""Glue's pages do not document its words, so these are others."""
CAPACITY_POLL_SECONDS = 0.1
_BATCH_TIMEOUT_MINUTES = 480
"""Glue's default since version 5.0 (https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-job.html)."""
_MAX_STREAM_MINUTES = 14 * 24 * 60
"""Glue ends a streaming run after 14 days (https://docs.aws.amazon.com/glue/latest/dg/glue-streaming-maintenance.html)."""


class GlueRuns(JobRuns):
    """Starts, watches and ends runs."""

    _id, _state, _stoppable, _stopping = "Id", "JobRunState", ("STARTING", "RUNNING"), "STOPPING"

    def start(self, job: Mapping[str, Any], request: Mapping[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
        """Add a run to ``runs``, start it, and return its record in state STARTING.

        Raises ``ServiceError`` if the job already has MaxConcurrentRuns live runs (a STOPPING one is live), or with
        this run the account would have more live runs, or more DPUs, than its quotas allow; nothing was started.
        """
        limit = int((job.get("ExecutionProperty") or {}).get("MaxConcurrentRuns") or 1)
        run = _new_record(job, request, self._clock())
        with self._lock:
            if sum(run["JobRunState"] in LIVE_STATES for run in runs) >= limit:
                raise ServiceError("ConcurrentRunsExceededException", f"Concurrent runs exceeded for {job['Name']}")
            self._check_quotas(run)
            runs.insert(0, run)
            self._begin(run, partial(self._run, dict(job), run))
        return run

    def _check_quotas(self, new: Mapping[str, Any]) -> None:
        live = [run for run in self._runs.values() if run["JobRunState"] in LIVE_STATES]
        limits, runs = Limits.read(self._settings.state), [*live, new]
        for name, used, limit in (
            ("concurrent job runs", len(runs), limits.glue_runs),
            ("task DPUs", sum(map(dpus_of, runs)), limits.glue_dpus),
        ):
            if used > limit:
                message = f"Max {name} per account exceeded: {limit:g}"
                raise ServiceError("ResourceNumberLimitExceededException", message)

    def _run(self, job: Mapping[str, Any], run: dict[str, Any]) -> None:
        if not self._has_capacity(run):
            self._finish(job, run, "FAILED", NO_CAPACITY, self._clock())
            return
        began = self._clock()
        # A streaming job without a timeout ends after its maximum lifetime.
        minutes, at_timeout = int(run.get("Timeout", _MAX_STREAM_MINUTES)), "TIMEOUT" if "Timeout" in run else "EXPIRED"
        state, message = self._execute(
            run,
            run["JobName"],
            lambda: glue_launch(job, run),
            (str(job.get("Role")), SERVICE, f"GlueJobRunnerSession-{run['Id'][:16]}"),
            minutes,
        )
        self._finish(job, run, at_timeout if state == "TIMEOUT" else state, message, began)

    def _has_capacity(self, run: dict[str, Any]) -> bool:
        """Wait, as a run of the class FLEX does, until AWS has spare capacity; False if it had none for too long."""
        end = time.monotonic() + Limits.read(self._settings.state).flex_wait_minutes * self._settings.minute_seconds
        while run.get("ExecutionClass") == "FLEX" and not Limits.read(self._settings.state).flex_capacity:
            with self._lock:
                if run["JobRunState"] == "STOPPING":
                    return True
                run["JobRunState"] = "WAITING"
            if time.monotonic() >= end:
                return False
            time.sleep(CAPACITY_POLL_SECONDS)
        return True

    def _finish(self, job: Mapping[str, Any], run: dict[str, Any], state: str, message: str, began: float) -> None:
        """Finish the run. ``began``: when it began to use workers."""
        now = self._clock()
        used = now - began if message != NO_CAPACITY else 0.0
        with self._lock:
            stopped = run["JobRunState"] == "STOPPING"
            run["CompletedOn"] = run["LastModifiedOn"] = round(now, 3)
            run["ExecutionTime"] = math.ceil(used)
            if job["Command"].get("Name") != "gluestreaming":
                # Seconds of all workers, which one process replaces here. Glue reports them for batch runs of the class
                # FLEX or with auto scaling, which all of the product's have
                # (https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html).
                run["DPUSeconds"] = round(used * dpus_of(run), 3)
            run["ErrorMessage"] = "" if stopped else message
            # Set last: a caller that sees a final state reads the other fields.
            run["JobRunState"] = "STOPPED" if stopped else state


def glue_launch(job: Mapping[str, Any], run: Mapping[str, Any]) -> JobLaunch:
    arguments: dict[str, str] = run["Arguments"]
    words = ["--JOB_NAME", str(run["JobName"]), "--JOB_RUN_ID", str(run["Id"])]
    words += [part for pair in arguments.items() for part in pair]
    # The value of Glue's only --conf argument holds several settings as "a=1 --conf b=2".
    properties = (part.strip().partition("=") for part in arguments.get("--conf", "").split("--conf") if "=" in part)
    return JobLaunch(
        script=job["Command"]["ScriptLocation"],
        modules=tuple(uri.strip() for uri in arguments.get("--extra-py-files", "").split(",") if uri.strip()),
        spark={key: value for key, _, value in properties},
        arguments=tuple(words),
        environment={},
    )


def _new_record(job: Mapping[str, Any], request: Mapping[str, Any], now: float) -> dict[str, Any]:
    """``now``: seconds since 1970."""
    now = round(now, 3)
    streaming = job["Command"].get("Name") == "gluestreaming"
    timeout = request.get("Timeout") or job.get("Timeout") or (None if streaming else _BATCH_TIMEOUT_MINUTES)
    copied = ("WorkerType", "NumberOfWorkers", "GlueVersion", "ExecutionClass")
    record = {
        "Id": f"jr_{uuid.uuid4().hex}{uuid.uuid4().hex}",
        "JobName": job["Name"],
        "StartedOn": now,
        "LastModifiedOn": now,
        "JobRunState": "STARTING",
        "Arguments": {**(job.get("DefaultArguments") or {}), **(request.get("Arguments") or {})},
        "ExecutionTime": 0,
    }
    if timeout:
        record["Timeout"] = int(timeout)
    return record | {key: source[key] for source in (job, request) for key in copied if source.get(key)}


def patch(runs: GlueRuns) -> None:
    wrap(glue, "_create_job", lambda original, data: _keep_limits(original(data), data["Name"], data))
    wrap(glue, "_update_job", lambda original, data: _keep_limits(original(data), data["JobName"], data["JobUpdate"]))
    wrap(provisioners, "_glue_job_fields", _job_fields)
    glue._start_job_run = partial(_answer_start, runs)
    glue._batch_stop_job_run = partial(_answer_stop, runs)
    state_machines.add_integration("glue:startJobRun", partial(_start_job_run, runs), rights)


def _job_fields(original: Original, properties: dict[str, Any]) -> dict[str, Any]:
    own = {key: properties[key] for key in ("ExecutionProperty", "ExecutionClass") if key in properties}
    return {**original(properties), **own}


def _keep_limits(response: EmulatorValue, name: str, properties: Mapping[str, Any]) -> EmulatorValue:
    """MaxConcurrentRuns, Timeout and the class of a job are those of its request, also through CloudFormation."""
    if response[0] == 200:
        job = glue._jobs[name]
        given = properties.get("ExecutionProperty") or job.get("ExecutionProperty") or {"MaxConcurrentRuns": 1}
        job["ExecutionProperty"] = {"MaxConcurrentRuns": int(given["MaxConcurrentRuns"])}
        job.pop("Timeout", None)
        if properties.get("Timeout"):
            job["Timeout"] = int(properties["Timeout"])
        if properties.get("ExecutionClass"):
            job["ExecutionClass"] = properties["ExecutionClass"]
    return response


def _start(runs: GlueRuns, data: dict[str, Any]) -> dict[str, Any]:
    name = data.get("JobName")
    if name not in glue._jobs:
        raise ServiceError("EntityNotFoundException", f"Job {name} not found")
    try:
        return runs.start(glue._jobs[name], data, glue._job_runs[name])
    except ServiceError as error:
        print(f"refused: a run of {name}: {error}", file=sys.stderr, flush=True)
        raise


def _answer_start(runs: GlueRuns, data: dict[str, Any]) -> EmulatorValue:
    try:
        return glue.json_response({"JobRunId": _start(runs, data)["Id"]})
    except ServiceError as error:
        return glue.error_response_json(error.code, str(error), 400)


def _answer_stop(runs: GlueRuns, data: dict[str, Any]) -> EmulatorValue:
    name, stopped, errors = data["JobName"], [], []
    for run_id in data.get("JobRunIds", []):
        run = next((run for run in glue._job_runs.get(name, []) if run["Id"] == run_id), None)
        entry = {"JobName": name, "JobRunId": run_id}
        if run is not None and runs.stop(run):
            stopped.append(entry)
            continue
        code = "EntityNotFoundException" if run is None else "InvalidInputException"
        errors.append({**entry, "ErrorDetail": {"ErrorCode": code, "ErrorMessage": "The run cannot be stopped."}})
    return glue.json_response({"SuccessfulSubmissions": stopped, "Errors": errors})


def _start_job_run(runs: GlueRuns, resource: str, data: dict[str, Any]) -> dict[str, Any]:
    """The integration of Step Functions, with and without ``.sync``; the emulator lacks both."""
    try:
        run = _start(runs, data)
    except ServiceError as error:
        raise stepfunctions._ExecutionError(f"Glue.{error.code}", str(error)) from None
    if not resource.endswith(".sync"):
        return {"JobRunId": run["Id"], "JobName": data["JobName"]}
    state_machines.wait_for_end(lambda: run["JobRunState"] not in LIVE_STATES, lambda: runs.stop(run))
    if run["JobRunState"] != SUCCEEDED:
        raise stepfunctions._ExecutionError("States.TaskFailed", json.dumps(run))
    return dict(run)


def rights(resource: str, data: dict[str, Any]) -> Rights:
    """Rights that a task of a state machine needs to start a job run."""
    arn = f"arn:aws:glue:{REGION}:{ACCOUNT}:job/{data['JobName']}"
    watched = ("GetJobRun", "GetJobRuns", "BatchStopJobRun") if resource.endswith(".sync") else ()
    return "Glue.AccessDeniedException", [Right(f"glue:{name}", arn) for name in ("StartJobRun", *watched)]
