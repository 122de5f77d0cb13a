"""Step Functions: an execution ends at 25,000 events of its history, and an inline Map runs 40 items at once."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Any

from ministack.services import stepfunctions  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.emulator_patches import EmulatorValue

MAX_EVENTS = 25_000
"""Events in an execution's history, the one of its end included.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/bp-history-limit.html
"""

MAX_INLINE_CONCURRENCY = 40
"""Items of an inline Map that run at once.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/state-map-inline.html
"""

_COUNT = "eventsOnAws"
_lock = threading.Lock()
_execution: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar("counted_execution", default=None)


def patch() -> None:
    """Apply the patches of this file, after those of ``state_machines``.

    The emulator records fewer events than AWS, so this counts those that AWS would record.
    """
    for name, started_and_ended in (("pass", 0), ("choice", 0), ("wait", 0), ("task", 0), ("parallel", 2), ("map", 2)):
        setattr(stepfunctions, f"_execute_{name}", _counted(f"_execute_{name}", 2 + started_and_ended))
    stepfunctions._run_distributed_map = _counted("_run_distributed_map", 2)
    _patch_task_events()
    _patch_executions()
    limit_inline_concurrency()


def _count(execution: dict[str, Any] | None, events: int) -> None:
    if execution is None:
        return
    with _lock:
        execution[_COUNT] = execution.get(_COUNT, 0) + events
        reached = execution[_COUNT] >= MAX_EVENTS
    if reached:
        raise stepfunctions._ExecutionError(
            "States.Runtime", f"The execution reached the maximum number of history events ({MAX_EVENTS})."
        )


def _counted(name: str, events: int) -> Callable[..., EmulatorValue]:
    original = getattr(stepfunctions, name)

    def counted(*args: EmulatorValue) -> EmulatorValue:
        _count(_execution.get(), events)
        return original(*args)

    return counted


def _patch_task_events() -> None:
    """An attempt of a task is scheduled, started, with ``.sync`` also submitted, and ends."""
    original = stepfunctions._add_event

    def add_event(execution: EmulatorValue, kind: str, details: EmulatorValue = None) -> EmulatorValue:
        if kind == "TaskScheduled":
            waits = "." in details["taskScheduledEventDetails"]["resource"].rpartition(":::")[2]
            _count(execution, 3 if waits else 2)
        elif kind in ("TaskSucceeded", "TaskFailed", "SucceedStateEntered", "SucceedStateExited", "FailStateEntered"):
            _count(execution, 1)
        return original(execution, kind, details)

    stepfunctions._add_event = add_event


def _patch_executions() -> None:
    """States count in the execution that runs them; a distributed Map's child has a history of its own."""
    run_execution, run_sub_machine = stepfunctions._run_execution, stepfunctions._run_sub_machine

    def counted_execution(arn: str) -> None:
        execution = stepfunctions._executions.get(arn)
        token = _execution.set(execution)
        try:
            _count(execution, 1)
            run_execution(arn)
        finally:
            _execution.reset(token)

    def counted_sub_machine(
        states: EmulatorValue,
        start_at: EmulatorValue,
        data: EmulatorValue,
        execution: EmulatorValue,
        context: EmulatorValue,
    ) -> EmulatorValue:
        token = _execution.set(execution)
        try:
            _count(execution, 2)
            return run_sub_machine(states, start_at, data, execution, context)
        finally:
            _execution.reset(token)

    stepfunctions._run_execution = counted_execution
    stepfunctions._run_sub_machine = counted_sub_machine


def limit_inline_concurrency() -> None:
    """Run at most ``MAX_INLINE_CONCURRENCY`` items of an inline Map at once, whatever its MaxConcurrency is."""
    original = stepfunctions._run_map_items

    def run_map_items(
        state: EmulatorValue, raw_input: EmulatorValue, execution: EmulatorValue, context: EmulatorValue
    ) -> EmulatorValue:
        processor = state.get("Iterator") or state.get("ItemProcessor", {})
        if (processor.get("ProcessorConfig") or {}).get("Mode") == "DISTRIBUTED":
            return original(state, raw_input, execution, context)
        limit = state.get("MaxConcurrency", 0)
        if isinstance(limit, str):
            limit = stepfunctions._jsonata_state_field(state, "MaxConcurrency", "number", raw_input, context)
        limited = {**state, "MaxConcurrency": min(limit or MAX_INLINE_CONCURRENCY, MAX_INLINE_CONCURRENCY)}
        return original(limited, raw_input, execution, context)

    stepfunctions._run_map_items = run_map_items
