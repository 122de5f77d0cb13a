"""A failed execution counts that people know of it, if they do: the alarm of failed executions tells the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.e2e.machines.conftest import BACKFILL_WITHOUT_OVERNIGHT, METRICS_NAMESPACE, verdict
from tests.e2e.machines.test_machines_with_stubs import REQUEST, TOTALS

if TYPE_CHECKING:
    from tests.e2e.machines.conftest import StubbedMachines

ERROR = {"raise": "InvalidDocumentError", "message": "does not match the ledger"}
REFUSED = {"refused": "datset is unknown: set dataset", "error": "InvalidInputError"}
FOUND = (REQUEST, {**TOTALS, "token": None, "waitSeconds": 0})


def counted(stubbed: StubbedMachines) -> dict[str, int]:
    """Number of failures that each machine has counted as notified."""
    now, found = datetime.now(UTC), {}
    for service in ("overnight", "backfill", "stream_window"):
        points = stubbed.cloud.client("cloudwatch").get_metric_statistics(
            Namespace=METRICS_NAMESPACE,
            MetricName="NotifiedFailures",
            Dimensions=[{"Name": "service", "Value": service}],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=3600,
            Statistics=["Sum"],
        )["Datapoints"]
        found[service] = int(sum(point["Sum"] for point in points))
    return found


@pytest.mark.parametrize(
    ("machine", "answers", "status", "notifications", "added"),
    [
        ("overnight", {"stub-settle": [verdict("FAILED", "1 failed", notify=True)]}, "FAILED", 1, {"overnight"}),
        ("overnight", {"stub-plan": [ERROR]}, "FAILED", 1, {"overnight"}),
        ("overnight", {"stub-plan": [REFUSED]}, "FAILED", 0, set()),
        (
            "overnight",
            {"stub-settle": [verdict("SUCCEEDED_WITH_QUARANTINE", "2 lines", notify=True)]},
            "SUCCEEDED",
            1,
            set(),
        ),
        ("backfill", {"stub-backfill": [ERROR]}, "FAILED", 1, {"backfill"}),
        ("backfill", {"stub-backfill": [REFUSED]}, "FAILED", 0, set()),
        # What its overnight execution has told
        (
            "backfill",
            {"stub-backfill": FOUND, "stub-settle": [verdict("FAILED", "1 failed", notify=True)]},
            "FAILED",
            1,
            {"overnight", "backfill"},
        ),
        # There was no overnight execution that could have told it
        (BACKFILL_WITHOUT_OVERNIGHT, {"stub-backfill": FOUND}, "FAILED", 0, set()),
        ("stream_window", {"stub-stream-control": [ERROR]}, "FAILED", 1, {"stream_window"}),
    ],
)
def test_what_people_know_is_counted(
    stubbed: StubbedMachines,
    machine: str,
    answers: dict[str, list],
    status: str,
    notifications: int,
    added: set[str],
) -> None:
    # Given
    for function, given in answers.items():
        stubbed.set_answers(function, *given)
    before = counted(stubbed)
    # When
    end = stubbed.run(machine, {})
    # Then
    assert end["status"] == status
    assert len(stubbed.take_notifications()) == notifications
    assert counted(stubbed) == {service: number + (service in added) for service, number in before.items()}
    if status == "FAILED":
        # And the count changes neither the error nor its cause
        assert end["error"] in ("OvernightFAILED", "InvalidDocumentError", "InvalidInputError", "BackfillFailed")
        assert end["cause"]
