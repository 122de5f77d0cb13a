"""Clients that crash, lose the answer, drop or delay a given write."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

WRITES = frozenset(
    {
        "put_item",
        "update_item",
        "delete_item",
        "transact_write_items",
        "put_object",
        "delete_object",
        "complete_multipart_upload",
        "abort_multipart_upload",
        "start_job_run",
        "batch_stop_job_run",
        "create_table",
        "update_table",
        "put_events",
    }
)


class Crash(BaseException):
    """The process has crashed: no code catches this, and its later calls have no effect."""


class Faults:
    """Counts the writes of all wrapped clients; attributes set the fault of the n-th write (from 1)."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.crash_before: int | None = None
        self.lose_answer_of: int | None = None
        self.drop: int | None = None
        self.delay: int | None = None
        self.repeat: int | None = None
        """The client gets no answer, and sends the same request again."""
        self.pause: tuple[int, Callable[[], object]] | None = None
        """(n, action of another process before write n)."""
        self._delayed: list[Callable[[], Any]] = []
        self._crashed = False
        self._lock = threading.RLock()

    def reset(self) -> None:
        """A new process, without faults."""
        self.writes.clear()
        self.crash_before = self.lose_answer_of = self.drop = self.delay = self.repeat = self.pause = None
        self._crashed = False

    def deliver(self) -> None:
        """Apply the delayed write now; its answer, or its rejection, is lost."""
        with suppress(ClientError):
            while self._delayed:
                self._delayed.pop()()

    def wrap(self, client: Any) -> Any:
        """The client with these faults."""
        return _Faulty(client, self)

    def call(self, name: str, method: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """One request at a time: the number of a write selects its fault."""
        if self.pause is not None and name in WRITES and len(self.writes) + 1 >= self.pause[0]:
            (_, meanwhile), self.pause = self.pause, None
            meanwhile()
        with self._lock:
            if self._crashed:
                raise Crash
            if name not in WRITES:
                return method(**kwargs)
            self.writes.append(name)
            number = len(self.writes)
            if number == self.delay:
                self._delayed.append(lambda: method(**kwargs))
                raise ReadTimeoutError(endpoint_url="loopback")
            if number == self.crash_before:
                self._crashed = True
                raise Crash
            if number == self.drop:
                raise ReadTimeoutError(endpoint_url="loopback")
            answer = method(**kwargs)
            # A transaction has a token: DynamoDB answers its repetition with the first response.
            if number == self.repeat and name != "transact_write_items":
                answer = method(**kwargs)
            if number == self.lose_answer_of:
                raise ReadTimeoutError(endpoint_url="loopback")
            return answer


class _Faulty:
    def __init__(self, client: Any, faults: Faults) -> None:
        self._client = client
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if name in ("exceptions", "get_paginator") or not callable(value):
            return value
        method = _complete(value) if name == "complete_multipart_upload" else value
        return lambda **kwargs: self._faults.call(name, method, kwargs)


def _complete(method: Callable[..., Any]) -> Callable[..., Any]:
    """The emulated S3 raises KeyError for the id of a completed upload; the real one answers."""

    def complete(**kwargs: Any) -> Any:
        try:
            return method(**kwargs)
        except KeyError as error:
            answer: Any = {"Error": {"Code": "NoSuchUpload", "Message": str(error)}}
            raise ClientError(answer, "CompleteMultipartUpload") from error

    return complete
