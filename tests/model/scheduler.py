"""Cooperative scheduling: every actor is a thread, one runs at a time, and each request is a possible switch."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError

from lake.errors import HybridRouterError

MAX_STEPS = 3000
"""More requests than any history needs: an actor that sends more is in an endless loop."""
READS = frozenset({"get_item", "batch_get_item", "query", "get_object", "head_object", "get_job_run", "get_job_runs"})
CRASH, LOSE_REQUEST, LOSE_RESPONSE, REPEAT = "crash", "lose_request", "lose_response", "repeat"
REFUSE, LATE, LATE_SOON, REPEAT_LATE = "refuse", "late", "late_soon", "repeat_late"
REQUESTS_BEFORE = {LATE: 10, LATE_SOON: 4, REPEAT_LATE: 10}
"""A late request is applied before the request of this distance, or when all actors have ended."""
STALE_READ, SWITCH = "stale_read", "switch"
CALL_FAULTS = frozenset({CRASH, LOSE_REQUEST, LOSE_RESPONSE, REPEAT, REFUSE, LATE, LATE_SOON, REPEAT_LATE, STALE_READ})


def is_read(operation: str) -> bool:
    """Whether a client's method only reads."""
    return operation in READS or operation.startswith("list_")


class Crash(BaseException):
    """The process crashed: no handler of the product may catch it, and its later requests have no effect."""


class Violation(BaseException):
    """The protocol broke a promise."""


@dataclass
class Actor:
    """One process of the system."""

    name: str
    body: Callable[[], object]
    resume: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    dead: bool = False
    """A fault crashed it."""
    ended: bool = False


@dataclass
class Scheduler:
    """Runs actors until all have ended.

    ``fault_at`` decides what happens at a request: nothing (``""``); a fault of the call: ``crash``, ``lose_request``
    (not applied, no response), ``lose_response`` (applied, no response), ``repeat`` (applied, and repeated by the
    client), ``refuse`` (an error of the service, not applied), ``late`` and ``late_soon`` (no response, applied after
    other requests), ``repeat_late`` (applied, and once more after other requests), ``stale_read`` (from an index that
    lags); an event of the environment, which ``apply_event``
    applies; ``switch:<actor>``: another actor runs first; ``<event>:<actor>``: the event, and then another actor runs
    first.
    """

    fault_at: Callable[[int, Actor, str], str]
    """Called with the step (from 1), the actor and the client's method."""
    apply_event: Callable[[str, Actor], None]
    after_write: Callable[[], None]
    now: Callable[[], datetime]
    set_issued_at: Callable[[datetime], None]
    """Called with the time at which the next applied request was sent."""
    step: int = 0
    actors: dict[str, Actor] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    violation: str | None = None
    _late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    """Step and request of each late application."""
    _end: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def add(self, actor: Actor) -> None:
        """Register an actor; actors run in the order of registration."""
        self.actors[actor.name] = actor

    def run(self) -> None:
        """Run all actors; ``violation`` holds the first broken promise."""
        threads = [threading.Thread(target=self._run, args=(actor,), daemon=True) for actor in self.actors.values()]
        for thread in threads:
            thread.start()
        self._resume_next()
        self._end.acquire()
        for thread in threads:
            thread.join()
        try:
            self._apply_late(MAX_STEPS + max(REQUESTS_BEFORE.values()))
        except Violation as violation:
            self.violation = self.violation or str(violation)

    def call(self, actor: Actor, client: Any, operation: str, request: dict[str, Any]) -> Any:
        """Send one request of an actor, with the fault of its step.

        Raises ``Crash``: the actor is dead, or the history has ended by a violation; ``Violation``: the actors send
        more than ``MAX_STEPS`` requests; ``ReadTimeoutError``: the request or its response is lost, or late;
        ``ClientError``: the service refuses the request.
        """
        if actor.dead or self.violation:
            raise Crash
        self.step += 1
        if self.step > MAX_STEPS:
            raise Violation(f"an actor is in an endless loop: {MAX_STEPS} requests")
        issued_at, step = self.now(), self.step
        fault = self.fault_at(step, actor, operation)
        event, _, next_actor = fault.partition(":")
        if event and event != SWITCH and event not in CALL_FAULTS:
            self.apply_event(event, actor)
        if next_actor:
            self._switch(actor, next_actor)
        if actor.dead or self.violation:
            raise Crash
        self._apply_late(self.step)
        self.trace.append(f"{step:4d} {actor.name} {operation} {_describe(request)} {fault}".rstrip())
        if fault == CRASH:
            actor.dead = True
            raise Crash
        if fault == LOSE_REQUEST:
            raise ReadTimeoutError(endpoint_url="model")
        if fault == REFUSE:
            error = service_error(client, operation, step)
            self.trace[-1] += f" -> {error.response['Error']['Code']}"
            raise error
        return self._apply_with(fault, client, operation, _with_body_in_memory(request), issued_at)

    def _apply_with(self, fault: str, client: Any, operation: str, request: dict[str, Any], issued_at: datetime) -> Any:
        """Apply the request at once, late, or twice."""
        # A history that is replayed with fewer faults may send another request at the step of this one.
        method = getattr(client, "stale_query" if fault == STALE_READ and operation == "query" else operation)

        def apply() -> Any:
            self.set_issued_at(issued_at)
            return self._apply(method, operation, request)

        # A transaction has a token: DynamoDB answers its repetition with the first response.
        repeated = operation != "transact_write_items"
        if fault in REQUESTS_BEFORE and (repeated or fault != REPEAT_LATE):
            self._late.append((self.step + REQUESTS_BEFORE[fault], apply))
        if fault in (LATE, LATE_SOON):
            raise ReadTimeoutError(endpoint_url="model")
        response = apply()
        if fault == LOSE_RESPONSE:
            raise ReadTimeoutError(endpoint_url="model")
        return apply() if fault == REPEAT and repeated else response

    def _apply_late(self, step: int) -> None:
        """Apply the late requests that are due at this step."""
        due = [apply for at, apply in self._late if at <= step]
        self._late = [item for item in self._late if item[0] > step]
        for apply in due:
            self.trace.append("     a late request is applied")
            with suppress(ClientError):
                apply()

    def _apply(self, method: Any, operation: str, request: dict[str, Any]) -> Any:
        try:
            response = method(**request)
        except ClientError as error:
            self.trace[-1] += f" -> {error.response['Error']['Code']}"
            raise
        if not is_read(operation):
            self.after_write()
        return response

    def _run(self, actor: Actor) -> None:
        actor.resume.acquire()
        try:
            if not self.violation:
                actor.body()
        except Crash:
            self.trace.append(f"     {actor.name} crashed")
        except Violation as violation:
            self.violation = self.violation or str(violation)
        except (HybridRouterError, BotoCoreError, ClientError) as error:
            self.trace.append(f"     {actor.name} ends: {type(error).__name__}: {error}")
        except BaseException as error:
            self.violation = self.violation or f"{actor.name} failed: {type(error).__name__}: {error}"
        actor.ended = True
        self._resume_next()

    def _switch(self, actor: Actor, name: str) -> None:
        next_actor = self.actors.get(name)
        if next_actor is None or next_actor is actor or next_actor.ended:
            return
        next_actor.resume.release()
        actor.resume.acquire()

    def _resume_next(self) -> None:
        for actor in self.actors.values():
            if not actor.ended:
                actor.resume.release()
                return
        self._end.release()


def _with_body_in_memory(request: dict[str, Any]) -> dict[str, Any]:
    """The body can be sent more than once, and after its file was removed, as a client's retry needs."""
    body = request.get("Body")
    return {**request, "Body": body.read()} if body is not None and hasattr(body, "read") else request


def _describe(request: dict[str, Any]) -> str:
    if "TransactItems" in request:
        return "".join(_describe(next(iter(action.values()))) + " " for action in request["TransactItems"]).strip()
    target = request.get("Key") or request.get("Item") or request.get("Prefix") or ""
    text = target["pk"] if isinstance(target, dict) else str(target)
    values = request.get("ExpressionAttributeValues", {})
    return f"{text} {[str(value) for value in values.values()][:3] if values else ''}".strip()


CONFLICTS = {
    "transact_write_items": (("TransactionCanceledException", 400), ("TransactionInProgressException", 400)),
    **dict.fromkeys(("put_item", "update_item"), (("TransactionConflictException", 400),)),
}
"""Errors of a write during a transaction for the same item."""


def service_error(client: Any, operation: str, number: int) -> ClientError:
    """The error of a request; ``number`` chooses among the possible errors of its operation."""
    errors = (*CONFLICTS.get(operation, ()), *client.ERRORS)
    code, status = errors[number % len(errors)]
    response: Any = {"Error": {"Code": code, "Message": "model"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    if code == "TransactionCanceledException":
        response["CancellationReasons"] = [{"Code": "TransactionConflict"}]
    return ClientError(response, operation)
