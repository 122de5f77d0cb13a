"""An EMR Serverless that keeps job runs in memory; it rejects requests that the real client would not send."""

import itertools
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

from lake.engines.emr_serverless import TERMINAL_STATES, EmrLaunch

ON_EMR = {"engine": "emr-serverless"}
"""Settings of the stream lane."""
APPLICATION = "00stream"
LAUNCH = EmrLaunch(
    APPLICATION,
    "arn:aws:iam::111122223333:role/stream",
    "s3://code/main.py",
    "--lake_bucket lake --region eu-central-1",
    "--conf spark.driver.cores=1",
    1440,
    "/aws/emr-serverless/stack/stream",
)


@cache
def _operations() -> Any:
    return boto3.client("emr-serverless", region_name="eu-central-1").meta.service_model


def emr_error(code: str, operation: str = "StartJobRun") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, operation)


class FakeEmr:
    """One application."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        """By id: name, mode and state."""
        self.requests: list[dict[str, Any]] = []
        self.cancelled: list[dict[str, Any]] = []
        self.unlisted: set[str] = set()
        """Runs that are not yet in the list."""
        self.page_size = 50
        self._tokens: dict[str, tuple[dict[str, Any], str]] = {}
        self._numbers = itertools.count(1)

    def states(self) -> list[str]:
        return [run["state"] for run in self.runs.values()]

    def end(self, state: str) -> None:
        """End every run that is alive."""
        for run in self.runs.values():
            if run["state"] not in TERMINAL_STATES:
                run["state"] = state

    def start_job_run(self, **request: Any) -> dict[str, Any]:
        validate_parameters(request, _operations().operation_model("StartJobRun").input_shape)
        self.requests.append(request)
        known = self._tokens.get(request["clientToken"])
        if known is not None:
            if known[0] != request:
                raise emr_error("ConflictException")
            return {"jobRunId": known[1]}
        run = f"00run{next(self._numbers)}"
        self._tokens[request["clientToken"]] = (request, run)
        self.runs[run] = {"id": run, "name": request["name"], "mode": request["mode"], "state": "SUBMITTED"}
        return {"jobRunId": run}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_job_runs"
        return SimpleNamespace(paginate=self._pages)

    def _pages(self, **request: Any) -> Iterator[dict[str, Any]]:
        validate_parameters(request, _operations().operation_model("ListJobRuns").input_shape)
        assert request["applicationId"] == APPLICATION
        states = request.get("states") or [run["state"] for run in self.runs.values()]
        found = [
            run
            for run in reversed(self.runs.values())
            if run["mode"] == request["mode"] and run["state"] in states and run["id"] not in self.unlisted
        ]
        for first in range(0, len(found), self.page_size):
            yield {"jobRuns": found[first : first + self.page_size]}

    def get_job_run(self, **request: Any) -> dict[str, Any]:
        validate_parameters(request, _operations().operation_model("GetJobRun").input_shape)
        run = self.runs.get(request["jobRunId"])
        if run is None:
            raise emr_error("ResourceNotFoundException", "GetJobRun")
        return {"jobRun": run}

    def cancel_job_run(self, **request: Any) -> dict[str, Any]:
        validate_parameters(request, _operations().operation_model("CancelJobRun").input_shape)
        self.cancelled.append(request)
        run = self.runs[request["jobRunId"]]
        if run["state"] in TERMINAL_STATES:
            raise emr_error("ValidationException", "CancelJobRun")
        run["state"] = "CANCELLED"
        return {}
