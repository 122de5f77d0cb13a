"""Runs of the jobs' code on the engine of the role that lacks a permission."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.removals.stage import Stage

EMR_ROLE = "EmrRole"
"""The role of job runs on EMR Serverless; those on Glue have ``JobsRole``."""
ENDED = frozenset({"SUCCEEDED", "SUCCESS", "FAILED", "STOPPED", "CANCELLED", "TIMEOUT", "ERROR"})


@dataclass(frozen=True, slots=True)
class GlueRun:
    """A run of a Glue job."""

    stage: Stage
    job: str
    id: str

    @classmethod
    def start(cls, stage: Stage, job: str, arguments: dict[str, str]) -> GlueRun:
        glue = stage.scenario.deployment.glue
        return cls(stage, job, glue.start_job_run(JobName=job, Arguments=arguments)["JobRunId"])

    def ended(self) -> str | None:
        """Its error message, empty if there is none; None: it has not ended."""
        run: dict[str, Any] = self.stage.scenario.deployment.glue.get_job_run(JobName=self.job, RunId=self.id)["JobRun"]
        return run.get("ErrorMessage", "") if run["JobRunState"] in ENDED else None

    def stop(self) -> None:
        self.stage.scenario.deployment.glue.batch_stop_job_run(JobName=self.job, JobRunIds=[self.id])


@dataclass(frozen=True, slots=True)
class EmrRun:
    """A job run on EMR Serverless, started as ``overnight`` starts it."""

    stage: Stage
    application: str
    id: str

    @classmethod
    def start(cls, stage: Stage, arguments: dict[str, str]) -> EmrRun:
        machine = stage.scenario.deployment.outputs.overnight
        definition = json.loads(
            stage.scenario.deployment.sfn.describe_state_machine(stateMachineArn=machine)["definition"]
        )
        asked = definition["States"]["Runs"]["ItemProcessor"]["States"]["RunOnEmr"]["Arguments"]
        given = asked["JobDriver"]["SparkSubmit"]
        of_the_stage = _first_literal(given["EntryPointArguments"]).split(" ")
        run = stage.scenario.cloud.client("emr-serverless").start_job_run(
            applicationId=asked["ApplicationId"],
            executionRoleArn=asked["ExecutionRoleArn"],
            jobDriver={
                "sparkSubmit": {
                    "entryPoint": given["EntryPoint"],
                    "entryPointArguments": [*of_the_stage, *(word for pair in arguments.items() for word in pair)],
                    "sparkSubmitParameters": f"{_first_literal(given['SparkSubmitParameters'])}1",
                }
            },
        )
        return cls(stage, asked["ApplicationId"], run["jobRunId"])

    def ended(self) -> str | None:
        """What it says of its end, empty if nothing; None: it has not ended."""
        emr = self.stage.scenario.cloud.client("emr-serverless")
        run = emr.get_job_run(applicationId=self.application, jobRunId=self.id)["jobRun"]
        return str(run.get("stateDetails", "")) if run["state"] in ENDED else None

    def stop(self) -> None:
        emr = self.stage.scenario.cloud.client("emr-serverless")
        emr.cancel_job_run(applicationId=self.application, jobRunId=self.id)


def _first_literal(expression: str) -> str:
    """The first string of a JSONata expression."""
    found = re.search(r"'([^']*)'", expression)
    assert found is not None, expression
    return found[1]
