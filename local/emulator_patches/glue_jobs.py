"""Glue: StartJobRun and BatchStopJobRun control real processes, and the jobs' limits are enforced."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ministack.services import glue  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.errors import ConcurrentRunsExceededError, ResourceNumberLimitExceededError
from local.glue_runs import GlueRuns, find_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.emulator_patches import EmulatorValue

_CODES = {
    ConcurrentRunsExceededError: "ConcurrentRunsExceededException",
    ResourceNumberLimitExceededError: "ResourceNumberLimitExceededException",
}
"""AWS Glue Web API Reference, StartJobRun."""


def patch(runs: GlueRuns) -> None:
    """Apply the patches of this file. MaxConcurrentRuns and Timeout also come through CloudFormation."""
    create, update, fields = glue._create_job, glue._update_job, provisioners._glue_job_fields

    def keep_limits(name: str, properties: Mapping[str, Any]) -> None:
        job = glue._jobs[name]
        job.setdefault("ExecutionProperty", {"MaxConcurrentRuns": 1})
        if properties.get("ExecutionProperty"):
            job["ExecutionProperty"] = {"MaxConcurrentRuns": int(properties["ExecutionProperty"]["MaxConcurrentRuns"])}
        job.pop("Timeout", None)
        if properties.get("Timeout"):
            job["Timeout"] = int(properties["Timeout"])
        if properties.get("ExecutionClass"):
            job["ExecutionClass"] = properties["ExecutionClass"]

    def create_job(data: dict[str, Any]) -> EmulatorValue:
        response = create(data)
        if response[0] == 200:
            keep_limits(data["Name"], data)
        return response

    def update_job(data: dict[str, Any]) -> EmulatorValue:
        response = update(data)
        if response[0] == 200:
            keep_limits(data["JobName"], data.get("JobUpdate", {}))
        return response

    def job_fields(properties: dict[str, Any]) -> dict[str, Any]:
        extra = {key: properties[key] for key in ("ExecutionProperty", "ExecutionClass") if key in properties}
        return {**fields(properties), **extra}

    def start_job_run(data: dict[str, Any]) -> EmulatorValue:
        name = data.get("JobName")
        if name not in glue._jobs:
            return glue.error_response_json("EntityNotFoundException", f"Job {name} not found", 400)
        try:
            run = runs.start(glue._jobs[name], data, glue._job_runs[name])
        except (ConcurrentRunsExceededError, ResourceNumberLimitExceededError) as error:
            print(f"refused: a run of {name}: {error}", file=sys.stderr, flush=True)
            return glue.error_response_json(_CODES[type(error)], str(error), 400)
        return glue.json_response({"JobRunId": run["Id"]})

    def batch_stop_job_run(data: dict[str, Any]) -> EmulatorValue:
        name, stopped, errors = data.get("JobName"), [], []
        for run_id in data.get("JobRunIds", []):
            run = find_run(glue._job_runs.get(name, []), run_id)
            entry = {"JobName": name, "JobRunId": run_id}
            if run is not None and runs.stop(run):
                stopped.append(entry)
                continue
            code = "EntityNotFoundException" if run is None else "InvalidInputException"
            errors.append({**entry, "ErrorDetail": {"ErrorCode": code, "ErrorMessage": "The run cannot be stopped."}})
        return glue.json_response({"SuccessfulSubmissions": stopped, "Errors": errors})

    glue._create_job, glue._update_job, provisioners._glue_job_fields = create_job, update_job, job_fields
    glue._start_job_run, glue._batch_stop_job_run = start_job_run, batch_stop_job_run
