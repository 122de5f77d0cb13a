"""What was uploaded is aborted once no commit of the attempt can follow, and not before. Faults are recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Partition
from transform.give_up import EnvironmentFault, record_fault
from transform.task_model import ConversionContext

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ROW = ManifestRow("m", State.RUNNING, Lane.BATCH, Partition("d", "2026-03-04", 12), "2026", 1, 1, attempt=2)


NO_ANSWER = ReadTimeoutError(endpoint_url="https://ledger")


@pytest.mark.parametrize(
    ("current", "recorded"),
    [
        (replace(ROW, state=State.QUEUED), True),
        (replace(ROW, state=State.PUBLISHING), True),
        # Another run is at work: the fault is not that of its attempt.
        (ROW, False),
        (None, False),
        (NO_ANSWER, False),
    ],
)
def test_a_manifest_that_waits_has_the_fault_of_the_environment(
    current: ManifestRow | Exception | None, recorded: bool
) -> None:
    # Given
    reasons: list[tuple[object, str]] = []
    lines: list[str] = []

    def get(_: str) -> ManifestRow | None:
        if isinstance(current, Exception):
            raise current
        return current

    manifests = SimpleNamespace(get=get, record_reason=lambda row, reason: reasons.append((row, reason)))
    services: Any = SimpleNamespace(ledger=SimpleNamespace(manifests=manifests))
    spark: Any = None
    context = ConversionContext(spark, services, "run-1", lambda: NOON, lambda _: False, lines.append)
    fault = EnvironmentFault("AWS could not be reached", "look at its network", passing=True)
    # When
    record_fault(context, "m", fault)
    # Then
    assert reasons == ([(current, str(fault))] if recorded else [])
    assert lines == (
        [f"the ledger does not have the reason of manifest m, this log alone has it: {NO_ANSWER}"]
        if current is NO_ANSWER
        else []
    )
