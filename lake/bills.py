"""What a job run has used, from the engine's own answer, and its price by the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from lake.engines import Engine
from lake.job_runs import (
    EMR_PREFIX,
    EMR_SUCCESS,
    SUCCEEDED,
    TERMINAL_EMR_STATES,
    TERMINAL_STATES,
    UNKNOWN_EMR_RUN_CODES,
    UNKNOWN_RUN_CODES,
    split_emr_run_id,
)
from lake.settings.workers import DPUS, X86

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mypy_boto3_glue import GlueClient

    from lake.job_runs import EmrServerlessClient
    from lake.settings.price import PriceSettings

HOUR_MILLISECONDS = 3_600_000
MAX_REASON = 500
"""Characters of the reason of a job run that are kept."""
MICRO = 1_000_000
"""Dollars are kept as whole millionths, so that parts add up to their sum exactly."""


@dataclass(frozen=True, slots=True)
class Bill:
    """One job run that has ended, and what its engine has metered."""

    job_run: str
    """The id by which it held its leases."""
    run: str | None
    """The run document that it was started for; None: it was started without one."""
    engine: Engine
    started_at: datetime
    ended_at: datetime
    seconds: int
    """Time for which it used workers."""
    dpu_milliseconds: int = 0
    """Of Glue: DPUs times milliseconds."""
    vcpu_milliseconds: int = 0
    """Of EMR Serverless, and so are the GB of memory."""
    gb_milliseconds: int = 0
    final: bool = True
    """False: the service has not all of its figures yet; those that it lacks are estimated, or 0."""
    state: str = SUCCEEDED
    """How it ended, in the words of Glue: SUCCEEDED, FAILED, TIMEOUT, STOPPED, ..."""
    reason: str = ""
    """Why it did not succeed, as the service reports it; at most ``MAX_REASON`` characters."""

    def micro_dollars(self, price: PriceSettings, architecture: str = X86) -> int:
        """Its price in millionths of a dollar; ``architecture`` is that of EMR Serverless (``emr.architecture``)."""
        vcpu_hour, gb_hour = price.emr_rates(architecture)
        dollars = (
            self.dpu_milliseconds * price.dpu_rate(self.engine)
            + self.vcpu_milliseconds * vcpu_hour
            + self.gb_milliseconds * gb_hour
        ) / HOUR_MILLISECONDS
        return round(dollars * MICRO)


def read_bill(
    glue: GlueClient, job: str, job_run: str, emr: EmrServerlessClient | None = None, run: str | None = None
) -> Bill | None:
    """The bill of a run of the Glue job ``job``, or of one on EMR Serverless.

    None: its service does not know it, or it has not ended. With ``run`` also None for a job run that was started for
    another run document. Raises botocore's errors.
    """
    if job_run.startswith(EMR_PREFIX):
        bill = None if emr is None else _read_emr_bill(emr, job_run)
    else:
        bill = _read_glue_bill(glue, job, job_run)
    return bill if bill is not None and run in (None, bill.run) else None


def divide(total: int, weights: Sequence[int]) -> list[int]:
    """``total`` in whole parts that are proportional to ``weights`` and add up to it; equal parts if all are 0."""
    if not any(weights):
        weights = [1] * len(weights)
    whole, parts, so_far, given = sum(weights), [], 0, 0
    for weight in weights:
        so_far += weight
        parts.append(total * so_far // whole - given)
        given += parts[-1]
    return parts


def _read_glue_bill(glue: GlueClient, job: str, job_run: str) -> Bill | None:
    try:
        found: Mapping[str, Any] = glue.get_job_run(JobName=job, RunId=job_run)["JobRun"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in UNKNOWN_RUN_CODES:
            raise
        return None
    if found["JobRunState"] not in TERMINAL_STATES or not {"StartedOn", "CompletedOn", "ExecutionTime"} <= found.keys():
        return None
    flex = found.get("ExecutionClass") == "FLEX"
    return Bill(
        job_run,
        found.get("Arguments", {}).get("--run"),
        Engine.GLUE_FLEX if flex else Engine.GLUE,
        found["StartedOn"],
        found["CompletedOn"],
        int(found["ExecutionTime"]),
        dpu_milliseconds=_dpu_milliseconds(found),
        final="DPUSeconds" in found or not found["ExecutionTime"],
        state=found["JobRunState"],
        reason=_reason(found["JobRunState"], found.get("ErrorMessage")),
    )


def _dpu_milliseconds(run: Mapping[str, Any]) -> int:
    """``DPUSeconds``, which Glue has for Flex and for auto scaling, so for every job of the stack; else all workers."""
    if "DPUSeconds" in run:
        return round(float(run["DPUSeconds"]) * 1000)
    capacity = float(run.get("MaxCapacity") or DPUS[run["WorkerType"]] * run["NumberOfWorkers"])
    return round(capacity * int(run["ExecutionTime"]) * 1000)


def _read_emr_bill(emr: EmrServerlessClient, job_run: str) -> Bill | None:
    application, service_id = split_emr_run_id(job_run)
    try:
        found = emr.get_job_run(applicationId=application, jobRunId=service_id)["jobRun"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in UNKNOWN_EMR_RUN_CODES:
            raise
        return None
    billed = found.get("billedResourceUtilization") or {}
    # Not the last change: the day of a cost must be the same whenever it is asked for.
    ended_at = found.get("endedAt")
    if found["state"] not in TERMINAL_EMR_STATES or ended_at is None:
        return None
    state = SUCCEEDED if found["state"] == EMR_SUCCESS else found["state"]
    arguments = list(found.get("jobDriver", {}).get("sparkSubmit", {}).get("entryPointArguments", ()))
    return Bill(
        job_run,
        arguments[arguments.index("--run") + 1] if "--run" in arguments[:-1] else None,
        Engine.EMR_SERVERLESS,
        found["createdAt"],
        ended_at,
        int(found.get("totalExecutionDurationSeconds", 0)),
        vcpu_milliseconds=round(billed.get("vCPUHour", 0) * HOUR_MILLISECONDS),
        gb_milliseconds=round(billed.get("memoryGBHour", 0) * HOUR_MILLISECONDS),
        final=bool(billed),
        state=state,
        reason=_reason(state, found.get("stateDetails")),
    )


def _reason(state: str, message: str | None) -> str:
    return "" if state == SUCCEEDED else (message or "")[:MAX_REASON]
