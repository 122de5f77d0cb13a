"""Step Functions: 256 KiB of state, names of executions, and errors that no ``States.ALL`` takes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ministack.core.responses import error_response_json  # type: ignore[import-untyped]
from ministack.services import stepfunctions  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.emulator_patches import EmulatorValue

MAX_STATE_BYTES = 262_144
"""Bytes of UTF-8 of a state's input or output, a task's result, and a Map's results together.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
"""

DATA_LIMIT_EXCEEDED = "States.DataLimitExceeded"
UNCATCHABLE = frozenset({DATA_LIMIT_EXCEEDED, "States.Runtime"})
"""Errors that ``States.ALL`` does not match.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
"""

_EXECUTION_NAME = re.compile(r"[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")
"""Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html"""


def patch() -> None:
    """Apply the patches of this file."""
    stepfunctions._error_matches = _error_matches
    stepfunctions._apply_parameters = _checked(stepfunctions._apply_parameters, "parameters")
    stepfunctions._apply_jsonata_arguments = _checked(stepfunctions._apply_jsonata_arguments, "arguments")
    stepfunctions._apply_output_path = _checked(stepfunctions._apply_output_path, "an output")
    stepfunctions._apply_catcher = _checked(stepfunctions._apply_catcher, "an output of Catch")
    _patch_results()
    _patch_inputs()


def check_size(value: EmulatorValue, subject: str) -> None:
    """Raise ``States.DataLimitExceeded`` if ``value`` has more than ``MAX_STATE_BYTES`` as JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A character has at most four bytes, so a short text needs no encoding.
    if len(text) * 4 > MAX_STATE_BYTES and len(text.encode("utf-8", "surrogatepass")) > MAX_STATE_BYTES:
        raise stepfunctions._ExecutionError(
            DATA_LIMIT_EXCEEDED,
            f"The state/task has {subject} with a size exceeding the maximum number of bytes service limit.",
        )


def _checked(original: Callable[..., EmulatorValue], subject: str) -> Callable[..., EmulatorValue]:
    def checked(*args: EmulatorValue, **kwargs: EmulatorValue) -> EmulatorValue:
        value = original(*args, **kwargs)
        check_size(value, subject)
        return value

    return checked


def _patch_results() -> None:
    """What a task, a Map or a Parallel returns counts before its Output or ResultSelector makes it smaller."""
    select, jsonata_output = stepfunctions._apply_result_selector, stepfunctions._apply_jsonata_output

    def apply_result_selector(state: EmulatorValue, result: EmulatorValue) -> EmulatorValue:
        check_size(result, "a result")
        return select(state, result)

    def apply_jsonata_output(
        state: EmulatorValue, raw_input: EmulatorValue, context: EmulatorValue = None, **options: EmulatorValue
    ) -> EmulatorValue:
        check_size(options.get("result"), "a result")
        output = jsonata_output(state, raw_input, context, **options)
        check_size(output, "an output")
        return output

    stepfunctions._apply_result_selector = apply_result_selector
    stepfunctions._apply_jsonata_output = apply_jsonata_output


def _patch_inputs() -> None:
    """The input of an execution, also of a nested one and of a Map's child, and the execution's name."""
    sub_machine = stepfunctions._run_sub_machine

    def started(original: Callable[[dict[str, Any]], EmulatorValue]) -> Callable[[dict[str, Any]], EmulatorValue]:
        def start(data: dict[str, Any]) -> EmulatorValue:
            name = data.get("name")
            if name is not None and not _EXECUTION_NAME.fullmatch(name):
                return error_response_json("InvalidName", f"Invalid Name: '{name}'", 400)
            if len(str(data.get("input") or "").encode()) > MAX_STATE_BYTES:
                return error_response_json(
                    "ValidationException",
                    "1 validation error detected: Value at 'input' failed to satisfy constraint: "
                    f"Member must have length less than or equal to {MAX_STATE_BYTES}",
                    400,
                )
            return original(data)

        return start

    def run_sub_machine(
        states: EmulatorValue, start_at: EmulatorValue, data: EmulatorValue, *args: EmulatorValue
    ) -> EmulatorValue:
        check_size(data, "an input")
        return sub_machine(states, start_at, data, *args)

    stepfunctions._start_execution = started(stepfunctions._start_execution)
    stepfunctions._start_sync_execution = started(stepfunctions._start_sync_execution)
    stepfunctions._run_sub_machine = run_sub_machine


def _error_matches(names: list[str], error: str) -> bool:
    """Whether a Retry or Catch for ``names`` takes ``error``: wildcards do not match ``UNCATCHABLE``."""
    if error in UNCATCHABLE:
        return error == DATA_LIMIT_EXCEEDED and error in names
    if "States.ALL" in names or error in names:
        return True
    return "States.TaskFailed" in names and error != "States.Timeout"
