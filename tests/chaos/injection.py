"""Carries out faults inside of botocore: around whole calls, and around each try below its retries.

Only botocore and obstore are patched, never the product. Nothing else is imported: runs of Glue load it as well.
"""

from __future__ import annotations

import contextlib
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import botocore.awsrequest
import botocore.client
import botocore.endpoint
import obstore
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, ReadTimeoutError
from obstore.exceptions import GenericError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

from tests.chaos.injection_points import INPUT_READ, point_of

UNDER_RETRIES = frozenset({"throttle", "unavailable", "lost try"})
"""Actions that botocore's own retries see; the others are seen by the product."""
ACTIONS = ("kill", "kill worker", "raise", "stall", "lost answer", *sorted(UNDER_RETRIES))


class Killed(BaseException):
    """The process is gone: nothing in the product may catch it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """At the ``nth`` time (from 1) that ``point`` is reached: ``action``, before or after the request itself."""

    point: str
    when: str
    nth: int
    action: str

    def __str__(self) -> str:
        return f"{self.action} {self.when} {self.point} #{self.nth}"


class Actor(Protocol):
    """Whoever sends requests: a process of the product."""

    @property
    def name(self) -> str:
        """For people."""

    def kill(self, fault: Fault) -> None:
        """End the process: raises or does not return."""

    def stall(self, fault: Fault) -> None:
        """Sleep for longer than a lease."""

    def fired(self, fault: Fault) -> bool:
        """Record that it fires; False when it has fired already."""


@dataclass
class Injector:
    """The faults of one actor and how often it has reached each point."""

    actor: Actor
    faults: tuple[Fault, ...]
    dead: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, point: str) -> list[Fault]:
        """The faults that this request meets."""
        with self.lock:
            number = self.counts[point] = self.counts.get(point, 0) + 1
        return [fault for fault in self.faults if fault.point == point and fault.nth == number]


CURRENT: ContextVar[Injector | None] = ContextVar("injector", default=None)
"""The injector of the actor that runs in this thread, and in the threads that it starts."""
WHOLE_PROCESS: list[Injector] = []
"""The injector of a process that is one actor."""
_tries: threading.local = threading.local()


@contextlib.contextmanager
def acting(injector: Injector | None) -> Iterator[None]:
    """Requests inside are those of this actor."""
    token = CURRENT.set(injector)
    try:
        yield
    finally:
        CURRENT.reset(token)


def around(injector: Injector, point: str, url: str, operation: str, call: Callable[[], Any]) -> Any:
    """One whole call of the product, with its faults."""
    if injector.dead:
        raise Killed
    faults = [fault for fault in injector.reach(point) if injector.actor.fired(fault)]
    for fault in faults:
        if fault.when == "before":
            _strike(injector, fault, url, operation)
    _tries.faults = [fault for fault in faults if fault.action in UNDER_RETRIES]
    try:
        answer = call()
    finally:
        _tries.faults = []
    if injector.dead:
        raise Killed
    for fault in faults:
        if fault.when == "after":
            _strike(injector, fault, url, operation)
    return answer


def _strike(injector: Injector, fault: Fault, url: str, operation: str) -> None:
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
    elif fault.action == "lost answer":
        raise ReadTimeoutError(endpoint_url=url)


def patches() -> list[tuple[Any, str, Any]]:
    """(owner, attribute, value) of what has to be replaced; without a current injector nothing changes."""
    client: Any = botocore.client.BaseClient
    endpoint: Any = botocore.endpoint.Endpoint
    original_call, original_try = client._make_api_call, endpoint._do_get_response
    original_start = threading.Thread.start

    def make_api_call(self: Any, operation: str, request: dict[str, Any]) -> Any:
        injector = CURRENT.get() or next(iter(WHOLE_PROCESS), None)
        if injector is None:
            return original_call(self, operation, request)
        point = point_of(self.meta.service_model.service_name, operation, request)
        url = self.meta.endpoint_url
        return around(injector, point, url, operation, lambda: original_call(self, operation, request))

    def get_response(self: Any, request: Any, operation_model: Any, context: Any) -> Any:
        faults = getattr(_tries, "faults", [])
        if not faults:
            return original_try(self, request, operation_model, context)
        fault = faults.pop(0)
        if fault.action == "lost try" and fault.when == "after":
            original_try(self, request, operation_model, context)
        if fault.action == "lost try":
            return None, ReadTimeoutError(endpoint_url=request.url)
        return _refusal(fault, request, operation_model), None

    def start(self: threading.Thread) -> None:
        injector = CURRENT.get()
        if injector is not None:
            run = self.run

            def run_as_actor() -> None:
                # A thread of a dead process ends without a word.
                with acting(injector), contextlib.suppress(Killed):
                    run()

            self.run = run_as_actor  # type: ignore[method-assign]
        original_start(self)

    original_get = obstore.get

    def get(*arguments: Any, **options: Any) -> Any:
        injector = CURRENT.get() or next(iter(WHOLE_PROCESS), None)
        if injector is None:
            return original_get(*arguments, **options)
        return around(injector, INPUT_READ, "", INPUT_READ, lambda: original_get(*arguments, **options))

    return [
        (obstore, "get", get),
        (client, "_make_api_call", make_api_call),
        (endpoint, "_do_get_response", get_response),
        (threading.Thread, "start", start),
    ]


def install() -> None:
    """Patch this process for good."""
    for owner, name, value in patches():
        setattr(owner, name, value)


class _NoBody:
    def stream(self) -> Iterator[bytes]:
        return iter(())


def _refusal(fault: Fault, request: Any, operation_model: Any) -> Any:
    """What S3 or DynamoDB answers when it has no time, as botocore has parsed it."""
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
