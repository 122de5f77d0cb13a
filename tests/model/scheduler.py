"""Cooperative scheduling: actors are threads, one runs at a time, and at every client call that may change."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError

from lake.errors import HybridRouterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

MAX_STEPS = 3000
"""No history needs as many: an actor that does turns in circles."""
READS = frozenset({"get_item", "query", "get_object", "head_object", "get_job_run"})


def is_read(operation: str) -> bool:
    return operation in READS or operation.startswith("list_")


class Crash(BaseException):
    """The process is gone: nothing catches it, and nothing it calls afterwards has an effect."""


class Violation(BaseException):
    """The protocol broke a promise."""


@dataclass
class Actor:
    name: str
    body: Callable[[], object]
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    dead: bool = False
    """It was killed."""
    over: bool = False
    error: Exception | None = None
    """What ended it: the process exits, as after a crash."""


@dataclass
class Baton:
    """Runs actors to their ends.

    ``choose`` says what happens at a step: nothing (``""``), ``crash``, ``lose`` (applied, no answer), ``drop`` (not
    applied, no answer), ``twice`` (applied, no answer, repeated by the client), ``stale`` (of an index),
    the name of an event of the environment, which ``happen`` brings about, or ``<event>:<actor>``: another actor goes
    on, after the event or after nothing (``to``).
    """

    choose: Callable[[int, Actor, str], str]
    happen: Callable[[str, Actor], None]
    after_write: Callable[[], None]
    now: Callable[[], datetime]
    issued: Callable[[datetime], None]
    """Takes the time at which the request was made that is about to be applied."""
    step: int = 0
    actors: dict[str, Actor] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    violation: str | None = None
    _end: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def add(self, actor: Actor) -> None:
        self.actors[actor.name] = actor

    def run(self) -> None:
        threads = [threading.Thread(target=self._live, args=(actor,), daemon=True) for actor in self.actors.values()]
        for thread in threads:
            thread.start()
        self._pass_on()
        self._end.acquire()
        for thread in threads:
            thread.join()

    def call(self, actor: Actor, client: Any, operation: str, request: dict[str, Any]) -> Any:
        """One request of an actor, and whatever happens around it."""
        if actor.dead or self.violation:
            raise Crash
        self.step += 1
        if self.step > MAX_STEPS:
            raise Violation("the actors turn in circles")
        issued = self.now()
        choice = self.choose(self.step, actor, operation)
        event, _, other = choice.partition(":")
        if other:
            if event != "to":
                self.happen(event, actor)
            self._switch(actor, other)
            if actor.dead or self.violation:
                raise Crash
        elif choice and choice not in ("crash", "lose", "drop", "twice", "stale"):
            self.happen(choice, actor)
        self.trace.append(f"{self.step:4d} {actor.name} {operation} {_about(request)} {choice}".rstrip())
        if choice == "crash":
            actor.dead = True
            raise Crash
        if choice == "drop":
            raise ReadTimeoutError(endpoint_url="model")
        method = getattr(client, "stale_query" if choice == "stale" else operation)
        self.issued(issued)
        answer = self._apply(method, operation, request)
        if choice == "lose":
            raise ReadTimeoutError(endpoint_url="model")
        # A transaction carries a token: its repetition is answered like the first.
        if choice == "twice" and operation != "transact_write_items":
            answer = self._apply(method, operation, request)
        return answer

    def _apply(self, method: Any, operation: str, request: dict[str, Any]) -> Any:
        try:
            answer = method(**request)
        except ClientError as error:
            self.trace[-1] += f" -> {error.response['Error']['Code']}"
            raise
        if not is_read(operation):
            self.after_write()
        return answer

    def _live(self, actor: Actor) -> None:
        actor.go.acquire()
        try:
            if not self.violation:
                actor.body()
        except Crash:
            self.trace.append(f"     {actor.name} is gone")
        except Violation as violation:
            self.violation = self.violation or str(violation)
        except (HybridRouterError, BotoCoreError, ClientError) as error:
            actor.error = error
            self.trace.append(f"     {actor.name} ends: {type(error).__name__}: {error}")
        except BaseException as error:
            self.violation = self.violation or f"{actor.name} broke: {type(error).__name__}: {error}"
        actor.over = True
        self._pass_on()

    def _switch(self, actor: Actor, name: str) -> None:
        other = self.actors.get(name)
        if other is None or other is actor or other.over:
            return
        other.go.release()
        actor.go.acquire()

    def _pass_on(self) -> None:
        for actor in self.actors.values():
            if not actor.over:
                actor.go.release()
                return
        self._end.release()


def _about(request: dict[str, Any]) -> str:
    if "TransactItems" in request:
        return "".join(_about(next(iter(action.values()))) + " " for action in request["TransactItems"]).strip()
    where = request.get("Key") or request.get("Item") or request.get("Prefix") or ""
    text = where["pk"] if isinstance(where, dict) else str(where)
    values = request.get("ExpressionAttributeValues", {})
    return f"{text} {[str(value) for value in values.values()][:3] if values else ''}".strip()
