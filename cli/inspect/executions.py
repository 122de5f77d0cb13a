"""The executions of ``overnight``: Step Functions lists them, the ledger has their plans and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cli.deployed_stack import DeployedStack
from lake.texts import read_instant

PAGE = 100
RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution. Step Functions forgets it after 90 days; the ledger does not."""

    name: str
    status: str
    """The status that Step Functions reports; UNKNOWN: it has forgotten the execution."""
    started_at: datetime | None
    ended_at: datetime | None
    plan: dict[str, Any] | None
    """What the ledger has of its plan; None: it was not planned, or only as a dry run."""
    verdict: dict[str, Any] | None

    @property
    def outcome(self) -> str:
        """The verdict of settle; without one the status."""
        return str((self.verdict or {}).get("outcome") or self.status)

    @property
    def is_night(self) -> bool:
        """Whether it was to convert something: a dry run is recorded nowhere and succeeds."""
        return self.plan is not None or self.status != "SUCCEEDED"


def list_executions(stack: DeployedStack) -> Iterator[Execution]:
    """The executions of the last 90 days, newest first, page by page. Raises botocore's errors."""
    token: dict[str, str] = {}
    while True:
        page = stack.sfn.list_executions(stateMachineArn=stack.outputs.overnight, maxResults=PAGE, **token)
        for item in sorted(page["executions"], key=lambda found: found["startDate"], reverse=True):
            yield _execution(stack, item)
        if not page.get("nextToken"):
            return
        token = {"nextToken": page["nextToken"]}


def find_execution(stack: DeployedStack, name: str) -> Execution | None:
    """The execution of this name or ARN; None: neither Step Functions nor the ledger knows it."""
    short = name.rsplit(":", 1)[-1]
    try:
        return _execution(stack, stack.sfn.describe_execution(executionArn=execution_arn(stack, short)))
    except (stack.sfn.exceptions.ExecutionDoesNotExist, stack.sfn.exceptions.InvalidArn):
        # A text that cannot be a name is not a valid ARN either.
        row = stack.ledger.executions.get(short)
    if row is None:
        return None
    plan, verdict = row.get("plan"), row.get("verdict")
    return Execution(short, "UNKNOWN", _instant(plan, "planned_at"), _instant(verdict, "settled_at"), plan, verdict)


def execution_arn(stack: DeployedStack, name: str) -> str:
    """The ARN of the execution of ``overnight`` with this name."""
    return f"{stack.outputs.overnight.replace(':stateMachine:', ':execution:')}:{name}"


def _execution(stack: DeployedStack, item: dict[str, Any]) -> Execution:
    row = stack.ledger.executions.get(item["name"]) or {}
    ended = item.get("stopDate")
    return Execution(
        item["name"],
        item["status"],
        item["startDate"].astimezone(UTC),
        ended.astimezone(UTC) if ended else None,
        row.get("plan"),
        row.get("verdict"),
    )


def _instant(part: dict[str, Any] | None, name: str) -> datetime | None:
    return read_instant(part[name]) if part and name in part else None
