"""In place of the product's thread pools: the submitting thread does the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def inline_pools() -> Iterator[None]:
    """Every ``ThreadPoolExecutor`` works as ``InlinePool`` does."""
    methods: Any = {name: value for name, value in vars(InlinePool).items() if callable(value)}
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

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done
