"""Injects faults into botocore: around whole calls, and around each attempt that botocore retries.

Only botocore and obstore are patched, never the product. The module imports nothing else, because Glue runs load it.
Injection points are the steps of the protocol, recognized by the product's requests.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any

import botocore.awsrequest
import botocore.client
import botocore.endpoint
import obstore
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, ReadTimeoutError
from obstore.exceptions import GenericError

RETRIED_BY_BOTOCORE = frozenset({"throttle", "unavailable", "lost attempt"})
"""Actions that botocore's own retries handle; the product sees all other actions."""
ACTIONS = ("kill", "kill worker", "raise", "stall", "lost response", *sorted(RETRIED_BY_BOTOCORE))
ASSIGNMENT = re.compile(r"(#\w+) = (:v\d+)")
INPUT_READ = "input read"
LISTED = "manifest-of-hour row"
POINT_BY_STATE = {
    "RUNNING": "claim",
    "QUEUED": "release",
    "PUBLISHING": "commit",
    "DONE": "finish",
    "FAILED": "fail",
    "SUPERSEDED": "supersede",
}
POINT_BY_PREFIX = {
    "manifests/": "manifest document",
    "parts/": "part document",
    "divisions/": "division document",
    "inbox/": "pointer",
    "commits/": "commit document",
    "exclusions/": "exclusions",
    "intents/": "intent",
    "results/": "result document",
    "plans/": "plan document",
    "sweep/": "sweep progress",
    "tables/": "batch document",
    "_tables/": "table metadata",
}
POINT_BY_OPERATION = {
    "CreateMultipartUpload": "upload create",
    "UploadPart": "upload part",
    "CompleteMultipartUpload": "completion",
    "HeadObject": "head object",
    "AbortMultipartUpload": "abort upload",
    "DeleteObject": "delete object",
    "ListMultipartUploads": "list uploads",
    "ListObjectsV2": "list objects",
    "ListObjectVersions": "list input",
    "DeleteItem": "forgotten entry",
    "Query": "query ledger",
}
INJECTION_POINTS = (
    *("arrival put", "adopt", "abandon", "enqueue", "claim", "renew", "release", "commit", "finish", "fail", "force"),
    *("supersede", "dataset row", "partition row", "manifest document", "pointer", "commit document", "exclusions"),
    *("collection row", "part document", "division document", "result document", "upload create", "upload part"),
    *("completion", "head object", "abort upload"),
    *("intent", "plan document", "delete object", "list uploads", INPUT_READ),
    *("outbox row", "batch document", "table row", "table metadata", "table mark", "forgotten entry"),
)
"""Points at which histories inject faults: every write, the reads that decide about one, and the input."""


def point_of(service: str, operation: str, request: dict[str, Any]) -> str:
    """The injection point of a request; reads of documents and rows are ``read ...``."""
    if operation in POINT_BY_OPERATION:
        return POINT_BY_OPERATION[operation]
    if service == "s3":
        key = str(request.get("Key", ""))
        name = next((name for prefix, name in POINT_BY_PREFIX.items() if key.startswith(prefix)), "object")
        return name if operation == "PutObject" else f"read {name}"
    if operation == "TransactWriteItems":
        return _transaction(request["TransactItems"])
    if operation == "PutItem":
        return _put(request["Item"])
    if operation == "UpdateItem":
        return _update(request)
    return f"read {_kind(request.get('Key', {}))}" if operation == "GetItem" else operation


def _kind(key: dict[str, Any]) -> str:
    return f"{str(key.get('pk', '')).partition('#')[0] or 'item'} row"


def _transaction(actions: list[dict[str, Any]]) -> str:
    """The first action determines the step; queued manifests follow the lists of their hours."""
    points = [_put(action["Put"]["Item"]) if "Put" in action else _update(action["Update"]) for action in actions]
    return "enqueue" if points[0] == LISTED else points[0]


def _put(item: dict[str, Any]) -> str:
    kind = _kind(item)
    if kind == "arrival row":
        return "arrival put"
    if kind == "manifest row":
        return "abandon" if item.get("state") == "ABANDONED" else "enqueue"
    return kind


def _update(request: dict[str, Any]) -> str:
    kind = _kind(request["Key"])
    if kind == "arrival row":
        return "adopt"
    if kind != "manifest row":
        return kind
    assigned = dict(ASSIGNMENT.findall(request["UpdateExpression"].partition(" REMOVE ")[0]))
    if "#tabled" in assigned:
        return "table mark"
    if "#state" not in assigned:
        return "renew"
    if "#generation" in assigned:
        return "force"
    return POINT_BY_STATE.get(str(request["ExpressionAttributeValues"][assigned["#state"]]), "state change")


WORKER_POINTS = ("upload create", "upload part", INPUT_READ)
"""Points that a Spark worker reaches, not the driver."""


def fault_space() -> list[tuple[str, str, str]]:
    """(point, ``before`` or ``after``, action) of every fault that can occur, in a fixed order."""
    found = []
    for point in INJECTION_POINTS:
        for action in ACTIONS:
            if action == "kill worker" and point not in WORKER_POINTS:
                continue
            if point == INPUT_READ and (action in RETRIED_BY_BOTOCORE or action == "lost response"):
                continue
            # Renewals run in their own thread; a process that stalls elsewhere finds its lease lost there.
            if action == "stall" and point == "renew":
                continue
            # Only an applied request can lose its response; a throttled one is refused before it is applied.
            moments = {"throttle": ("before",), "unavailable": ("before",), "lost response": ("after",)}
            found += [(point, when, action) for when in moments.get(action, ("before", "after"))]
    return found


CONDITIONS = ("broken file", "force", "orphan", "lost uploads", "failing task")
CONDITION_RATE = 0.15
NEEDED_BY_POINT = {
    "exclusions": {"broken file"},
    "release": {"broken file"},
    "abort upload": {"broken file", "failing task"},
    "adopt": {"orphan"},
    "abandon": {"orphan"},
    "fail": {"lost uploads"},
    "force": {"force"},
    "delete object": {"force"},
}
"""Conditions without which a history never reaches an injection point."""


def conditions_for(point: str, random: Random) -> set[str]:
    """Random conditions, and the conditions that the point needs."""
    chosen = {condition for condition in CONDITIONS if random.random() < CONDITION_RATE}
    return chosen | NEEDED_BY_POINT.get(point, set())


class Killed(BaseException):
    """The process was killed. A BaseException, because no handler of the product may catch it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One injected fault: ``action``, before or after the ``nth`` request (from 1) at ``point``."""

    point: str
    when: str
    nth: int
    action: str

    def __str__(self) -> str:
        return f"{self.action} {self.when} {self.point} #{self.nth}"


class Actor:
    """A process of the product that sends requests, the faults it can meet, and how often it reached each point."""

    def __init__(self, name: str, faults: tuple[Fault, ...], counts: dict[str, int]) -> None:
        self.name, self.faults, self.counts = name, faults, counts
        self.dead = False

    def kill(self, _: Fault) -> None:
        """End the process: raises or does not return."""
        self.dead = True
        raise Killed

    def stall(self) -> None:
        """Suspend the process for longer than a lease."""
        raise NotImplementedError

    def fired(self, fault: Fault) -> bool:
        """Record that the fault is injected now; False if it was injected before."""
        raise NotImplementedError

    def reach(self, point: str) -> list[Fault]:
        """Count one request at the point; return the faults that are due at it."""
        with _counting:
            number = self.counts[point] = self.counts.get(point, 0) + 1
        return [fault for fault in self.faults if fault.point == point and fault.nth == number]


_counting = threading.Lock()
CURRENT: ContextVar[Actor | None] = ContextVar("actor", default=None)
"""The actor that runs in this thread and in the threads that it starts."""
WHOLE_PROCESS: list[Actor] = []
"""At most one: a process which is one actor as a whole."""
_attempts: threading.local = threading.local()


@contextlib.contextmanager
def acting_as(actor: Actor | None) -> Iterator[None]:
    """Requests inside the context belong to the actor; with None they meet no faults."""
    token = CURRENT.set(actor)
    try:
        yield
    finally:
        CURRENT.reset(token)


def call_with_faults(actor: Actor, point: str, url: str, operation: str, call: Callable[[], Any]) -> Any:
    """One whole call of the product, with the faults that are due at its point."""
    if actor.dead:
        raise Killed
    faults = [fault for fault in actor.reach(point) if actor.fired(fault)]
    for fault in faults:
        if fault.when == "before":
            _inject(actor, fault, url, operation)
    _attempts.faults = [fault for fault in faults if fault.action in RETRIED_BY_BOTOCORE]
    try:
        response = call()
    finally:
        _attempts.faults = []
    if actor.dead:
        raise Killed
    for fault in faults:
        if fault.when == "after":
            _inject(actor, fault, url, operation)
    return response


def _inject(actor: Actor, fault: Fault, url: str, operation: str) -> None:
    if fault.action in ("kill", "kill worker"):
        actor.kill(fault)
    elif fault.action == "stall":
        actor.stall()
        if actor.dead:
            raise Killed
    elif fault.action == "raise" and fault.point == INPUT_READ:
        raise GenericError(f"injected: {fault}")
    elif fault.action == "raise":
        raise ClientError({"Error": {"Code": "InternalServerError", "Message": f"injected: {fault}"}}, operation)
    elif fault.action == "lost response":
        raise ReadTimeoutError(endpoint_url=url)


def patches() -> list[tuple[Any, str, Any]]:
    """(owner, attribute, new value) of each attribute to replace; without a current actor nothing changes."""
    client: Any = botocore.client.BaseClient
    endpoint: Any = botocore.endpoint.Endpoint
    original_call, original_attempt = client._make_api_call, endpoint._do_get_response
    original_start = threading.Thread.start

    def make_api_call(self: Any, operation: str, request: dict[str, Any]) -> Any:
        actor = CURRENT.get() or next(iter(WHOLE_PROCESS), None)
        if actor is None:
            return original_call(self, operation, request)
        point = point_of(self.meta.service_model.service_name, operation, request)
        url = self.meta.endpoint_url
        return call_with_faults(actor, point, url, operation, lambda: original_call(self, operation, request))

    def get_response(self: Any, request: Any, operation_model: Any, context: Any) -> Any:
        faults = getattr(_attempts, "faults", [])
        if not faults:
            return original_attempt(self, request, operation_model, context)
        fault = faults.pop(0)
        if fault.action == "lost attempt" and fault.when == "after":
            original_attempt(self, request, operation_model, context)
        if fault.action == "lost attempt":
            return None, ReadTimeoutError(endpoint_url=request.url)
        return _error_response(fault, request, operation_model), None

    def start(self: threading.Thread) -> None:
        actor = CURRENT.get()
        if actor is not None:
            run = self.run

            def run_as_actor() -> None:
                # The process is dead, so no caller may see how its threads ended.
                with acting_as(actor), contextlib.suppress(Killed):
                    run()

            self.run = run_as_actor  # type: ignore[method-assign]
        original_start(self)

    original_get = obstore.get

    def get(*arguments: Any, **options: Any) -> Any:
        actor = CURRENT.get() or next(iter(WHOLE_PROCESS), None)
        if actor is None:
            return original_get(*arguments, **options)
        return call_with_faults(actor, INPUT_READ, "", INPUT_READ, lambda: original_get(*arguments, **options))

    return [
        (obstore, "get", get),
        (client, "_make_api_call", make_api_call),
        (endpoint, "_do_get_response", get_response),
        (threading.Thread, "start", start),
    ]


def install() -> None:
    for owner, name, value in patches():
        setattr(owner, name, value)


class _NoBody:
    def stream(self) -> Iterator[bytes]:
        return iter(())


def _error_response(fault: Fault, request: Any, operation_model: Any) -> Any:
    """The response of S3 or DynamoDB under throttling or overload, as botocore parses it."""
    s3 = operation_model.service_model.service_name == "s3"
    code = "SlowDown" if s3 else "ProvisionedThroughputExceededException"
    status = 503 if s3 or fault.action == "unavailable" else 400
    if fault.action == "unavailable":
        code = "ServiceUnavailable"
    http = botocore.awsrequest.AWSResponse(request.url, status, HTTPHeaders(), _NoBody())
    parsed = {
        "Error": {"Code": code, "Message": f"injected: {fault}"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0},
    }
    return http, parsed
