"""In place of the product's thread pools: the submitting thread does the work, or threads take turns at requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch


@contextmanager
def pools_replaced_by(pool: type) -> Iterator[None]:
    """Every ``ThreadPoolExecutor`` works as this class does."""
    methods: Any = {name: value for name, value in vars(pool).items() if callable(value)}
    with patch.multiple(ThreadPoolExecutor, create=True, **methods):
        yield


class InlinePool:
    """The part of ``ThreadPoolExecutor``'s API that the product uses."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> InlinePool:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def shutdown(self, **_: Any) -> None:
        return

    def map(self, function: Callable[..., Any], *columns: Any) -> Iterator[Any]:
        """An error of one item does not keep the others from being worked on."""
        done = [self.submit(function, *items) for items in zip(*columns, strict=False)]
        return (item.result() for item in done)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> _Done:
        try:
            return _Done(function(*arguments), None)
        except Exception as error:
            return _Done(None, error)


@dataclass
class _Done:
    value: Any
    error: Exception | None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


_current = threading.local()


def give_turn() -> None:
    """Let the other threads of this thread's pool run up to their own ``give_turn`` or their end."""
    thread: PoolThread | None = getattr(_current, "thread", None)
    if thread is not None:
        thread.pause()


class PoolThread:
    """The work of one ``submit``, and its future."""

    def __init__(self, pool: TurnTakingPool, work: Callable[[], Any]) -> None:
        self._pool, self._work = pool, work
        self._turn, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self.ended = False

    def take_turn(self) -> None:
        """Run until the thread gives its turn away, or ends."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._turn.release()
        self._paused.acquire()

    def pause(self) -> None:
        self._paused.release()
        self._turn.acquire()

    def cancel(self) -> None:
        """Never start it."""
        self.ended = self.ended or self._thread is None

    def result(self) -> Any:
        self._pool.run(self)
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        _current.thread = self
        self._turn.acquire()
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        self.ended = True
        self._paused.release()


class TurnTakingPool:
    """The part of ``ThreadPoolExecutor``'s API that the product uses."""

    def __init__(self, max_workers: int, **_: Any) -> None:
        self._max_workers = max_workers
        self._threads: list[PoolThread] = []

    def __enter__(self) -> TurnTakingPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.run()

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        assert wait
        if cancel_futures:
            for thread in self._threads:
                thread.cancel()
        self.run()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> PoolThread:
        thread = PoolThread(self, lambda: function(*arguments))
        self._threads.append(thread)
        return thread

    def map(self, function: Callable[..., Any], *columns: Any) -> Iterator[Any]:
        threads = [self.submit(function, *items) for items in zip(*columns, strict=False)]
        return (thread.result() for thread in threads)

    def run(self, awaited: PoolThread | None = None) -> None:
        """Let the first ``max_workers`` threads take turns until ``awaited`` has ended, or all have."""
        while not (awaited is not None and awaited.ended):
            waiting = [thread for thread in self._threads if not thread.ended][: self._max_workers]
            if not waiting:
                return
            for thread in waiting:
                thread.take_turn()
