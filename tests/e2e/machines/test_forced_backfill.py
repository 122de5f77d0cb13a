"""A backfill with force: manifests of the range that have ended are queued again before overnight starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.machines.conftest import StubbedMachines

HOURS = {"dataset": "orders", "from": "2026-11-01T00", "to": "2026-11-02T23"}
TOTALS = {"found": 3, "known": 2, "recorded": 1, "unsettled": 0, "bytes": 30}


def force(stubbed: StubbedMachines, *, dry_run: bool) -> tuple[str, dict[str, Any]]:
    """Run a backfill with force whose reprocess takes two calls; returns the execution's name and output."""
    stubbed.set_answers(
        "stub-backfill", {**HOURS, "dryRun": dry_run, "force": True}, {**TOTALS, "token": None, "waitSeconds": 0}
    )
    stubbed.set_answers("stub-reprocess", {"queued": 1, "token": "next"}, {"queued": 2, "token": None})
    end = stubbed.run("backfill", {**HOURS, "force": True})
    assert end["status"] == "SUCCEEDED", end
    return end["name"], json.loads(end["output"])


def test_a_forced_backfill_reprocesses_its_range_before_overnight(stubbed: StubbedMachines) -> None:
    # When
    name, result = force(stubbed, dry_run=False)
    # Then: one request of two calls, under the name of the execution
    request = {**HOURS, "dryRun": False, "only": "all", "request": name, "raiseRefusal": True}
    assert stubbed.calls("stub-reprocess") == [{**request, "token": None}, {**request, "token": "next"}]
    # And: overnight gets the range and nothing else
    (plan,) = stubbed.calls("stub-plan")
    assert {key: value for key, value in plan.items() if key != "execution"} == HOURS
    assert result["search"] == {**TOTALS, "reprocessed": 2}


def test_a_dry_forced_backfill_only_counts_and_plans(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-plan", {"runs": 4})
    name, result = force(stubbed, dry_run=True)
    assert [call["dryRun"] for call in stubbed.calls("stub-reprocess")] == [True, True]
    assert stubbed.calls("stub-plan") == [{**HOURS, "dryRun": True, "execution": name, "raiseRefusal": True}]
    assert result == {"dryRun": True, "search": {**TOTALS, "reprocessed": 2}, "plan": {"runs": 4}}
