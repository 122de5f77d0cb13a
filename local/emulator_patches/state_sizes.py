"""Step Functions: a state holds 256 KiB, and the errors that no ``States.ALL`` takes.

It is the one limit that is enforced here: what JSONata makes of the data is known only when a machine runs.
"""

from __future__ import annotations

import json

from ministack.services import stepfunctions  # type: ignore[import-untyped]

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


def patch() -> None:
    stepfunctions._error_matches = _error_matches
    for name, subject in (
        ("_apply_jsonata_arguments", "arguments"),
        ("_apply_jsonata_output", "an output"),
        ("_apply_catcher", "an output of Catch"),
    ):
        _patch_size(name, subject)
    sub_machine = stepfunctions._run_sub_machine

    def run_sub_machine(
        states: EmulatorValue, start_at: EmulatorValue, data: EmulatorValue, *args: EmulatorValue
    ) -> EmulatorValue:
        _check_size(data, "an input")
        return sub_machine(states, start_at, data, *args)

    stepfunctions._run_sub_machine = run_sub_machine


def _patch_size(name: str, subject: str) -> None:
    """What a task or a Map returns counts before its Output makes it smaller."""
    original = getattr(stepfunctions, name)

    def checked(*args: EmulatorValue, **options: EmulatorValue) -> EmulatorValue:
        _check_size(options.get("result"), "a result")
        value = original(*args, **options)
        _check_size(value, subject)
        return value

    setattr(stepfunctions, name, checked)


def _check_size(value: EmulatorValue, subject: str) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_STATE_BYTES:
        raise stepfunctions._ExecutionError(
            DATA_LIMIT_EXCEEDED,
            f"The state/task has {subject} with a size exceeding the maximum number of bytes service limit.",
        )


def _error_matches(names: list[str], error: str) -> bool:
    """Whether a Retry or Catch for ``names`` takes ``error``: wildcards do not match ``UNCATCHABLE``."""
    if error in UNCATCHABLE:
        return error == DATA_LIMIT_EXCEEDED and error in names
    if "States.ALL" in names or error in names:
        return True
    return "States.TaskFailed" in names and error != "States.Timeout"
