"""Injects faults into botocore: around whole calls, and around each attempt that botocore retries.

Only botocore and obstore are patched, never the product. The module imports nothing else, because Glue runs load it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import botocore.awsrequest
import botocore.client
import botocore.endpoint
import obstore
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, ReadTimeoutError
from obstore.exceptions import GenericError

from tests.chaos.injection_points import INPUT_READ, RETRIED_BY_BOTOCORE, point_of


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
        """Record that the fault is injected now; False: it was injected before."""
        raise NotImplementedError

    def reach(self, point: str) -> list[Fault]:
        """Count one request at the point; the faults that are due at it."""
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
    """Requests inside the context belong to the actor; None: they meet no faults."""
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
