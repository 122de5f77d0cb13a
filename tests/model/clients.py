# ruff: noqa: N803 (the names are boto3's)
"""The clients of an actor: each call is a step of the history, and may be refused for a while; Glue's job runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tests.model.scheduler import is_read
from tests.unit.router.glue import glue_client

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lake.manifest import ObjectVersion
    from tests.model.scheduler import Actor
    from tests.model.world import World


class ActorClient:
    """One service as one actor sees it."""

    def __init__(self, world: World, actor: Actor | None, client: Any) -> None:
        self._world, self._actor, self._target = world, actor, client
        self.exceptions = client.exceptions

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


INPUT, ONE_FILE, OUTPUT, READ_DOCUMENTS, WRITE_DOCUMENTS = "input", "one file", "output", "read", "write"
KINDS = (INPUT, ONE_FILE, OUTPUT, READ_DOCUMENTS, WRITE_DOCUMENTS)
BLOCKING = frozenset({INPUT, OUTPUT})
"""Kinds that the preflight finds: a run that begins meanwhile claims nothing."""
DENIED_FILE = "orders/a.ndjson"
"""The file that cannot be read while ``ONE_FILE`` is denied."""
OUTPUT_WRITES = frozenset({"create_multipart_upload", "upload_part", "complete_multipart_upload"})


class DenyingClient:
    """S3 with the requests refused that ``denied`` names; it changes as the history goes on."""

    def __init__(self, client: Any, denied: Collection[str]) -> None:
        self._client, self._denied = client, denied

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if not self._denied or name == "exceptions":
            return attribute
        return self._unless_denied(name, attribute)

    def _unless_denied(self, operation: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            if kind_of(operation, request) in self._denied:
                raise access_denied(operation)
            return method(**request)

        return call


def kind_of(operation: str, request: dict[str, Any]) -> str | None:
    """The kind of a request; None: it is never denied."""
    if operation in OUTPUT_WRITES:
        return OUTPUT
    if request.get("Bucket") == "control":
        return {"get_object": READ_DOCUMENTS, "put_object": WRITE_DOCUMENTS}.get(operation)
    return None


def may_read(denied: Collection[str], file: ObjectVersion) -> bool:
    """Whether a job may read the file: the tasks of the model read no bytes."""
    return INPUT not in denied and not (ONE_FILE in denied and file.key == DENIED_FILE)


def access_denied(operation: str) -> ClientError:
    """The answer to a denied request (Amazon S3 API Reference, "Error responses")."""
    response: Any = {"Error": {"Code": "AccessDenied", "Message": "model"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    return ClientError(response, operation)


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
