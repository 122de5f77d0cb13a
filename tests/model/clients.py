# ruff: noqa: N803 (the names are boto3's)
"""The clients of an actor: each call is a step of the history; Glue's job runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.model.scheduler import is_read
from tests.unit.router.glue import glue_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model.scheduler import Actor
    from tests.model.world import World


class ActorClient:
    """One service as one actor sees it."""

    def __init__(self, world: World, actor: Actor | None, client: Any) -> None:
        self._world, self._actor, self._target = world, actor, client
        self.exceptions = getattr(client, "exceptions", None)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation == "get_paginator":
            return lambda name: _Paginator(getattr(self, name))
        scheduler, actor, method = self._world.scheduler, self._actor, getattr(self._target, operation)
        self._world.wait(timedelta(milliseconds=1))
        if actor is None or scheduler is None:
            return lambda **request: self._call_without_faults(operation, method, request)
        return lambda **request: scheduler.call(actor, self._target, operation, request)

    def _call_without_faults(self, operation: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        response = method(**request)
        if not is_read(operation):
            self._world.issued_at = self._world.now
            self._world.after_write()
        return response


@dataclass(frozen=True)
class _Paginator:
    call: Callable[..., Any]

    def paginate(self, **request: Any) -> Any:
        while True:
            page = self.call(**request)
            yield page
            if not page["IsTruncated"]:
                return
            if "Uploads" in page:
                request |= {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
            elif "Versions" in page:
                request["KeyMarker"] = page["NextKeyMarker"]
            else:
                request["StartAfter"] = page["Contents"][-1]["Key"]


USED = {
    "StartedOn": datetime(2026, 11, 20, 22, tzinfo=UTC),
    "CompletedOn": datetime(2026, 11, 20, 23, tzinfo=UTC),
    "ExecutionTime": 3600,
    "DPUSeconds": 7201.5,
}
"""What every job run of an execution has used."""


class FakeGlue:
    """Job runs are the actors: terminal once the actor ends, or once Glue reports it as stopped.

    A started run is an actor that the history has anyway.
    """

    def __init__(self, world: World) -> None:
        self.exceptions = glue_client().exceptions
        self._world = world

    def get_job_run(self, *, JobName: str, RunId: str) -> dict[str, Any]:
        return {"JobRun": self._run(RunId)}

    def get_job_runs(self, *, JobName: str, MaxResults: int) -> dict[str, Any]:
        actors = {} if self._world.scheduler is None else self._world.scheduler.actors
        return {"JobRuns": [self._run(name) for name in actors if name.rstrip("0123456789") == "stream"]}

    def start_job_run(self, *, JobName: str) -> dict[str, str]:
        return {"JobRunId": "started"}

    def _run(self, run: str) -> dict[str, Any]:
        if not self._world.run_is_terminal(run):
            return {"Id": run, "JobRunState": "RUNNING"}
        ended = {"Id": run, "JobRunState": "STOPPED"}
        document = self._world.run_documents.get(run)
        return ended if document is None else {**ended, **USED, "Arguments": {"--run": document}}
