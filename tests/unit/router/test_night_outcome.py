"""How an execution has ended beside its plan, and who is told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from router.settle.verdict import read_night_outcome
from tests.unit.lake.world import MORNING
from tests.unit.router.planning import document
from tests.unit.router.settling import done, planned, settled

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment

PLAN = {"deadline": MORNING.isoformat(), "ends_at": (MORNING - timedelta(hours=1)).isoformat()}


@pytest.mark.parametrize(
    ("row", "minutes", "late", "named"),
    [
        ({}, 5, 0, []),
        ({"plan": {"runs": 1}}, 5, 0, []),
        ({"plan": PLAN}, -1, 0, []),
        ({"plan": PLAN}, 0.9, 0, []),
        ({"plan": PLAN}, 34, 34, ["it ended 34 minutes after its deadline", "planned was"]),
    ],
)
def test_a_late_end_is_reported(row: dict[str, Any], minutes: float, late: int, named: list[str]) -> None:
    outcome = read_night_outcome(row, MORNING + timedelta(minutes=minutes))
    assert outcome.late_minutes == late
    text = "; ".join(outcome.sentences())
    assert bool(text) == bool(named)
    assert [part for part in named if part not in text] == []


def test_settle_notifies_of_a_late_end(deployment: Deployment) -> None:
    # Given: an execution that is done after its deadline, 06:00 in Berlin
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    deployment.wait(timedelta(hours=20))
    # When
    answer = settled(deployment)
    # Then: it has succeeded, and a person gets a message
    assert (answer["verdict"], answer["notify"]) == ("SUCCEEDED", True)
    lines = answer["notification"].splitlines()
    assert any(line.startswith("It ended 30 minutes after its deadline 2026-11-21T05:00") for line in lines)
    assert [line for line in lines if line.startswith("- ")] == [
        "- See its datasets, what failed and why, and the logs: hybrid-router night overnight --stage test"
    ]
    # And the document has it for programs
    assert document(deployment, answer["verdictUri"])["night"]["late_minutes"] == 30
