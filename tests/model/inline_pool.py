"""In place of the product's thread pools: the submitting thread does the work, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULES_WITH_POOLS = (
    "lake.publish",
    "router.ownership.take",
    "lake.successors",
    "router.plan.handler",
    "router.collect.divide",
    "router.executions.run_status",
    "router.requests.promote",
    "router.requests.reprocess",
    "router.listing.unrecorded",
    "router.executions.run_status",
    "router.settle.published",
    "router.sweep.hours",
    "router.sweep.leftovers",
    "router.tables.batch",
    "router.tables.committer",
    "streaming_job.micro_batch",
    "transform.upload",
    "transform.convert",
    "transform.plan_attempt",
)
"""Modules that use ``ThreadPoolExecutor``."""


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
