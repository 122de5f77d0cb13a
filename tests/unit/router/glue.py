"""A Glue that keeps job runs and tables in memory, with the exceptions of the real client."""

import itertools
from functools import cache
from typing import Any

import boto3
from botocore.validate import validate_parameters

ACCOUNT = "111122223333"
LIVE = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})


@cache
def glue_client() -> Any:
    """A real client, for its exceptions and its model."""
    return boto3.client("glue", region_name="eu-central-1")


class FakeGlue:
    """The calls of the router; one run at a time per job, tables with a version."""

    def __init__(self) -> None:
        self.exceptions = glue_client().exceptions
        self.runs: dict[str, dict[str, str]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.before_update = lambda: None
        self.bills: dict[str, dict[str, Any]] = {}
        """Usage of ended runs, by run: the fields of Glue's ``JobRun``."""
        self.quota_is_full = False
        """Other jobs of the account use up its quota of runs or DPUs."""
        self.without_room: set[str] = set()
        """Jobs for whose next run the quota has no room."""
        self.optimizers: dict[tuple[str, str], dict[str, Any]] = {}
        """Configuration by table and type."""
        self._numbers = itertools.count(1)

    def start_job_run(self, JobName: str) -> dict[str, str]:  # noqa: N803
        runs = self.runs.setdefault(JobName, {})
        if LIVE & set(runs.values()):
            raise self._error("ConcurrentRunsExceededException", "StartJobRun")
        if self.quota_is_full or JobName in self.without_room:
            raise self._error("ResourceNumberLimitExceededException", "StartJobRun")
        run = f"jr_{next(self._numbers)}"
        runs[run] = "RUNNING"
        return {"JobRunId": run}

    def get_job(self, JobName: str) -> dict[str, Any]:  # noqa: N803
        return {"Job": self.jobs[JobName]}

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803
        try:
            return {"JobRun": {"Id": RunId, "JobRunState": self.runs[JobName][RunId], **self.bills.get(RunId, {})}}
        except KeyError:
            raise self._error("EntityNotFoundException", "GetJobRun") from None

    def get_job_runs(self, JobName: str, MaxResults: int) -> dict[str, Any]:  # noqa: N803
        found = self.runs.get(JobName, {}).items()
        runs = [{"Id": run, "JobRunState": state, **self.bills.get(run, {})} for run, state in found]
        return {"JobRuns": runs[::-1][:MaxResults]}

    def batch_stop_job_run(self, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:  # noqa: N803
        for run in JobRunIds:
            self.runs[JobName][run] = "STOPPED"
        return {}

    def get_table(self, DatabaseName: str, Name: str) -> dict[str, Any]:  # noqa: N803
        if Name not in self.tables:
            raise self._error("EntityNotFoundException", "GetTable")
        others = {"DatabaseName": DatabaseName, "CreatedBy": "an operator", "CatalogId": ACCOUNT}
        return {"Table": {**self.tables[Name], **others}}

    def create_table(self, DatabaseName: str, TableInput: dict[str, Any]) -> None:  # noqa: N803
        if TableInput["Name"] in self.tables:
            raise self._error("AlreadyExistsException", "CreateTable")
        self.tables[TableInput["Name"]] = {**TableInput, "VersionId": "0"}

    def update_table(self, DatabaseName: str, TableInput: Any, SkipArchive: bool, VersionId: str) -> None:  # noqa: N803
        self.before_update()
        current = self.tables[TableInput["Name"]]
        if current["VersionId"] != VersionId:
            raise self._error("ConcurrentModificationException", "UpdateTable")
        assert SkipArchive
        assert not {"DatabaseName", "CreatedBy", "CatalogId", "VersionId"} & set(TableInput)
        self.tables[TableInput["Name"]] = {**TableInput, "VersionId": str(int(VersionId) + 1)}

    def create_table_optimizer(self, **request: Any) -> None:
        self._optimizer("CreateTableOptimizer", request)
        if self._name(request) in self.optimizers:
            raise self._error("AlreadyExistsException", "CreateTableOptimizer")
        self.optimizers[self._name(request)] = request["TableOptimizerConfiguration"]

    def update_table_optimizer(self, **request: Any) -> None:
        self._optimizer("UpdateTableOptimizer", request)
        assert self._name(request) in self.optimizers
        self.optimizers[self._name(request)] = request["TableOptimizerConfiguration"]

    def delete_table_optimizer(self, **request: Any) -> None:
        self._optimizer("DeleteTableOptimizer", request)
        if self.optimizers.pop(self._name(request), None) is None:
            raise self._error("EntityNotFoundException", "DeleteTableOptimizer")

    def _optimizer(self, operation: str, request: dict[str, Any]) -> None:
        """Validates as botocore and Glue do."""
        validate_parameters(request, glue_client().meta.service_model.operation_model(operation).input_shape)
        assert request["CatalogId"] == ACCOUNT
        assert request["TableName"] in self.tables

    def _name(self, request: dict[str, Any]) -> tuple[str, str]:
        return request["TableName"], request["Type"]

    def _error(self, code: str, operation: str) -> Exception:
        error: Exception = getattr(self.exceptions, code)({"Error": {"Code": code, "Message": code}}, operation)
        return error
