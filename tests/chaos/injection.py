"""Injects faults into botocore: around whole calls, and around each attempt that botocore retries.

Only botocore and obstore are patched, never the product. The module imports nothing else, because Glue runs load it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import botocore.awsrequest
import botocore.client
import botocore.endpoint
import obstore
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, ReadTimeoutError
from obstore.exceptions import GenericError

from tests.chaos.injection_points import INPUT_READ, point_of

RETRIED_BY_BOTOCORE = frozenset({"throttle", "unavailable", "lost attempt"})
"""Actions that botocore's own retries handle; the product sees the others."""
ACTIONS = ("kill", "kill worker", "raise", "stall", "lost response", *sorted(RETRIED_BY_BOTOCORE))


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


class Actor(Protocol):
    """A process of the product that sends requests."""

    @property
    def name(self) -> str:
        """Shown in the log."""

    def kill(self, fault: Fault) -> None:
        """End the process: raises or does not return."""

    def stall(self, fault: Fault) -> None:
        """Suspend the process for longer than a lease."""

    def fired(self, fault: Fault) -> bool:
        """Record that the fault is injected now; False: it was injected before."""


@dataclass
class Injector:
    """The faults of one actor, and how often it has reached each injection point."""

    actor: Actor
    faults: tuple[Fault, ...]
    dead: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, point: str) -> list[Fault]:
        """Count one request at the point; the faults that are due at it."""
        with self.lock:
            number = self.counts[point] = self.counts.get(point, 0) + 1
        return [fault for fault in self.faults if fault.point == point and fault.nth == number]


CURRENT: ContextVar[Injector | None] = ContextVar("injector", default=None)
"""The injector of the actor that runs in this thread and in the threads that it starts."""
WHOLE_PROCESS: list[Injector] = []
"""At most one injector: that of a process which is one actor as a whole."""
_attempts: threading.local = threading.local()


@contextlib.contextmanager
def acting_as(injector: Injector | None) -> Iterator[None]:
    """Requests inside the context belong to the injector's actor; None: they meet no faults."""
    token = CURRENT.set(injector)
    try:
        yield
    finally:
        CURRENT.reset(token)


def call_with_faults(injector: Injector, point: str, url: str, operation: str, call: Callable[[], Any]) -> Any:
    """One whole call of the product, with the faults that are due at its point."""
    if injector.dead:
        raise Killed
    faults = [fault for fault in injector.reach(point) if injector.actor.fired(fault)]
    for fault in faults:
        if fault.when == "before":
            _inject(injector, fault, url, operation)
    _attempts.faults = [fault for fault in faults if fault.action in RETRIED_BY_BOTOCORE]
    try:
        response = call()
    finally:
        _attempts.faults = []
    if injector.dead:
        raise Killed
    for fault in faults:
        if fault.when == "after":
            _inject(injector, fault, url, operation)
    return response


def _inject(injector: Injector, fault: Fault, url: str, operation: str) -> None:
    if fault.action in ("kill", "kill worker"):
        injector.actor.kill(fault)
    elif fault.action == "stall":
        injector.actor.stall(fault)
        if injector.dead:
            raise Killed
    elif fault.action == "raise" and fault.point == INPUT_READ:
        raise GenericError(f"injected: {fault}")
    elif fault.action == "raise":
        raise ClientError({"Error": {"Code": "InternalServerError", "Message": f"injected: {fault}"}}, operation)
    elif fault.action == "lost response":
        raise ReadTimeoutError(endpoint_url=url)


def patches() -> list[tuple[Any, str, Any]]:
    """(owner, attribute, new value) of each attribute to replace; without a current injector nothing changes."""
    client: Any = botocore.client.BaseClient
    endpoint: Any = botocore.endpoint.Endpoint
    original_call, original_attempt = client._make_api_call, endpoint._do_get_response
    original_start = threading.Thread.start

    def make_api_call(self: Any, operation: str, request: dict[str, Any]) -> Any:
        injector = CURRENT.get() or next(iter(WHOLE_PROCESS), None)
        if injector is None:
            return original_call(self, operation, request)
        point = point_of(self.meta.service_model.service_name, operation, request)
        url = self.meta.endpoint_url
        return call_with_faults(injector, point, url, operation, lambda: original_call(self, operation, request))

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
        injector = CURRENT.get()
        if injector is not None:
            run = self.run

            def run_as_actor() -> None:
                # The process is dead, so no caller may see how its threads ended.
                with acting_as(injector), contextlib.suppress(Killed):
                    run()

            self.run = run_as_actor  # type: ignore[method-assign]
        original_start(self)

    original_get = obstore.get

    def get(*arguments: Any, **options: Any) -> Any:
        injector = CURRENT.get() or next(iter(WHOLE_PROCESS), None)
        if injector is None:
            return original_get(*arguments, **options)
        return call_with_faults(injector, INPUT_READ, "", INPUT_READ, lambda: original_get(*arguments, **options))

    return [
        (obstore, "get", get),
        (client, "_make_api_call", make_api_call),
        (endpoint, "_do_get_response", get_response),
        (threading.Thread, "start", start),
    ]


def install() -> None:
    """Patch this process until it ends."""
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
