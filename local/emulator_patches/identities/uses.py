"""A record of used permissions: which statement of which role's policies let it do what."""

import json
import threading
from pathlib import Path

from ministack.core import iam_evaluator  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue


def patch(file: Path) -> None:
    """Each statement that allowed a role an action leaves a line in ``file``, once for each of the three."""
    evaluate = iam_evaluator.evaluate
    seen: set[tuple[str, ...]] = set()
    lock = threading.Lock()

    def recorded(asked: EmulatorValue, policies: EmulatorValue, *limits: EmulatorValue) -> EmulatorValue:
        result = evaluate(asked, policies, *limits)
        if result.decision == "Allow" and ":assumed-role/" in asked.principal_arn:
            role = asked.principal_arn.split("/")[1]
            statements = [statement for statements in policies for statement in statements]
            resources = tuple(iam_evaluator._first_match(asked, statements, "Allow").resources)
            use = (role, asked.action, *resources)
            with lock:
                if use not in seen:
                    seen.add(use)
                    with file.open("a") as lines:
                        lines.write(json.dumps({"role": role, "action": asked.action, "resources": resources}) + "\n")
        return result

    iam_evaluator.evaluate = recorded
