"""Step Functions: what AWS reports of a failed execution: a value to CloudWatch, and its description to its parent.

Sources: AWS Step Functions Developer Guide, "Monitoring Step Functions metrics using Amazon CloudWatch" and "Start a
new AWS Step Functions state machine from a running execution".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ministack.services import cloudwatch, stepfunctions  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from local.emulator_patches import EmulatorValue


def patch() -> None:
    """Apply the patches of this file."""
    fail = stepfunctions._fail_execution

    def fail_execution(execution: EmulatorValue, error: str, cause: str) -> None:
        # Before the status: a test that waits for the end of an execution finds the alarm's message as well.
        if execution["status"] != "ABORTED":
            dimensions = {"StateMachineArn": execution["stateMachineArn"]}
            cloudwatch.record_metric("AWS/States", "ExecutionsFailed", 1, "Count", dimensions)
            cloudwatch._evaluate_all_alarms()
        fail(execution, error, cause)

    def nested_failure(description: EmulatorValue) -> tuple[str, str]:
        fields = {f"{name[0].upper()}{name[1:]}": value for name, value in description.items()}
        return "States.TaskFailed", json.dumps(fields, default=str)

    stepfunctions._fail_execution = fail_execution
    stepfunctions._nested_execution_failure = nested_failure
