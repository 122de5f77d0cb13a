"""How an execution has ended beside its plan, and who is told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from router.plan.handler import plan
from router.settle.night_outcome import read_night_outcome
from tests.unit.lake.world import MORNING
from tests.unit.router.planning import document
from tests.unit.router.settling import done, planned, settled

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment

PLAN = {"deadline": MORNING.isoformat(), "ends_at": (MORNING - timedelta(hours=1)).isoformat()}
SWITCH = {
    "at": "2026-11-20T02:00:00.000+00:00",
    "from_engine": "glue-flex",
    "engine": "glue",
    "workers": 10,
    "reason": "spare capacity did not come",
    "micro_dollars": 151_700_000,
    "planned_micro_dollars": 100_000_000,
}


@pytest.mark.parametrize(
    ("row", "minutes", "notify", "named"),
    [
        ({}, 5, False, []),
        ({"plan": {"runs": 1}}, 5, False, []),
        ({"plan": PLAN}, -1, False, []),
        ({"plan": PLAN}, 0.9, False, []),
        ({"plan": PLAN}, 34, True, ["it ended 34 minutes after its deadline", "planned was"]),
        ({"plan": PLAN, "switch": SWITCH}, -1, False, ["used glue in place of glue-flex", "$151.70", "$100.00"]),
        ({"plan": PLAN, "refused_switch": SWITCH}, -1, True, ["needed glue in place", "batch.night_budget_dollars"]),
        ({"plan": PLAN, "switch": SWITCH, "refused_switch": SWITCH}, -1, False, ["used glue in place of"]),
        ({"plan": PLAN, "switch": SWITCH}, 2, True, ["2 minutes after", "used glue in place of"]),
    ],
)
def test_what_differs_from_the_plan_is_told(
    row: dict[str, Any], minutes: float, notify: bool, named: list[str]
) -> None:
    outcome = read_night_outcome(row, MORNING + timedelta(minutes=minutes))
    assert outcome.notify == notify
    text = "; ".join(outcome.sentences())
    assert bool(text) == bool(named)
    assert [part for part in named if part not in text] == []


def test_settle_reports_a_switch_and_a_late_end(deployment: Deployment) -> None:
    # Given: an execution that was switched, and is done after its deadline, 06:00 in Berlin
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    deployment.ledger.executions.switch_engine("overnight", SWITCH)
    deployment.wait(timedelta(hours=20))
    # When
    answer = settled(deployment)
    # Then: it has succeeded, and a person is told what differs from the plan
    assert (answer["verdict"], answer["notify"]) == ("SUCCEEDED", True)
    lines = answer["notification"].splitlines()
    assert any(line.startswith("It ended 30 minutes after its deadline 2026-11-21T05:00") for line in lines)
    assert any("used glue in place of glue-flex" in line for line in lines)
    assert [line for line in lines if line.startswith("- ")] == [
        "- See its datasets, what failed and why, and the logs: hybrid-router night overnight --stage test"
    ]
    # And the document has it for programs
    night = document(deployment, answer["verdictUri"])["night"]
    assert (night["late_minutes"], night["switch"]["engine"]) == (30, "glue")
    assert night["switch"]["expected_dollars"] == 151.7


def test_an_execution_in_time_on_its_engine_has_nothing_to_tell(deployment: Deployment) -> None:
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    answer = settled(deployment)
    assert not answer["notify"]
    assert document(deployment, answer["verdictUri"])["night"]["late_minutes"] == 0


def test_a_plan_that_is_repeated_keeps_what_was_switched(deployment: Deployment) -> None:
    planned(deployment, "a.json")
    deployment.ledger.executions.switch_engine("overnight", SWITCH)
    plan({"execution": "overnight"}, deployment.services)
    row = deployment.ledger.executions.get("overnight")
    assert row is not None
    assert row["switch"]["engine"] == "glue"
