"""The machines decide right, whatever their functions and runs answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.machines.conftest import verdict

if TYPE_CHECKING:
    from tests.e2e.machines.conftest import Stage

REQUEST = {"dataset": "orders", "from": "2026-11-01T00", "to": "2026-11-02T23", "dryRun": False}
TOTALS = {"found": 5, "known": 2, "recorded": 3, "unsettled": 0, "bytes": 30}


def output(end: dict[str, Any]) -> dict[str, Any]:
    assert end["status"] == "SUCCEEDED", end
    return json.loads(end["output"])


def test_a_bare_input_does_the_usual_night(stage: Stage) -> None:
    # Given a plan of two runs.
    stage.answers("stub-plan", stage.index("s3://control/runs/0", "s3://control/runs/1"))
    # When overnight starts with {}.
    end = stage.run("overnight", {})
    # Then every run was one Glue run, and the verdict is the output.
    assert output(end)["verdict"] == "SUCCEEDED"
    assert stage.calls("stub-plan") == [{"execution": end["name"]}]
    assert sorted(call["run"] for call in stage.calls("job")) == ["s3://control/runs/0", "s3://control/runs/1"]
    assert stage.calls("stub-settle") == [{"execution": end["name"]}]
    assert stage.calls("stub-catalog") == [{}]
    assert stage.notified() == []


def test_a_range_reaches_the_plan(stage: Stage) -> None:
    end = stage.run("overnight", {"dataset": "orders", "from": "2026-11-01"})
    assert stage.calls("stub-plan") == [{"dataset": "orders", "from": "2026-11-01", "execution": end["name"]}]


def test_nothing_to_do_starts_no_job(stage: Stage) -> None:
    stage.answers("stub-plan", stage.index())
    stage.answers("stub-settle", verdict("EMPTY", "nothing was waiting"))
    assert output(stage.run("overnight", {}))["verdict"] == "EMPTY"
    assert stage.calls("job") == []


@pytest.mark.parametrize("given", [{"datset": "orders"}, ["orders"], "orders"])
def test_a_wrong_input_is_one_sentence(stage: Stage, given: Any) -> None:
    # Given a plan that refuses its input.
    stage.answers("stub-plan", {"raise": "InvalidInputError", "message": "datset is unknown: type dataset"})
    end = stage.run("overnight", given)
    # Then the execution fails in its first state with this sentence and nothing else.
    assert (end["status"], end["error"]) == ("FAILED", "InvalidInputError")
    assert end["cause"] == "datset is unknown: type dataset"
    # And what is no object at all reaches the plan as a field that it will not know.
    expected = given if isinstance(given, dict) else {"input": given}
    assert stage.calls("stub-plan") == [{**expected, "execution": end["name"]}]


def test_a_transient_error_is_tried_again(stage: Stage) -> None:
    stage.answers("stub-plan", {"raise": "OwnershipError", "message": "later"}, stage.index())
    assert stage.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(stage.calls("stub-plan")) == 2


def test_a_terminal_error_is_not_tried_again(stage: Stage) -> None:
    stage.answers("stub-plan", {"raise": "InvalidDocumentError", "message": "not what the ledger says"})
    end = stage.run("overnight", {})
    assert (end["status"], end["error"]) == ("FAILED", "InvalidDocumentError")
    assert len(stage.calls("stub-plan")) == 1


def test_a_held_manifest_is_waited_for_without_a_cluster(stage: Stage) -> None:
    # Given a run that leaves a manifest to its live holder, who finishes it.
    stage.answers("stub-run-status", {"open": 1, "terminal": 0, "held": 1}, {"open": 0, "terminal": 1, "held": 0})
    assert stage.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(stage.calls("job")) == 2


def test_waiting_for_a_holder_ends(stage: Stage) -> None:
    stage.answers("stub-run-status", {"open": 1, "terminal": 0, "held": 1})
    stage.run("overnight", {})
    # Then there were as many rounds as held_rounds allows.
    assert len(stage.calls("job")) == 3


def test_a_job_that_fails_without_progress_is_not_paid_for_again_and_again(stage: Stage) -> None:
    # Given a job that always fails, and nobody who holds what it left.
    stage.answers("job", 1)
    stage.answers("stub-run-status", {"open": 1, "terminal": 0, "held": 0})
    stage.answers("stub-settle", verdict("FAILED", "1 manifests are not done"))
    end = stage.run("overnight", {})
    # Then it ran max_attempts times; the ledger's verdict fails the execution, and people are told.
    assert len(stage.calls("job")) == 2
    assert (end["status"], end["error"]) == ("FAILED", "OvernightFAILED")
    assert end["cause"] == "1 manifests are not done. See s3://control/verdict.json"
    assert stage.notified() == [end["cause"]]


def test_progress_allows_further_failures(stage: Stage) -> None:
    # Given a job that fails three times, but each time with less left.
    stage.answers("stub-plan", {**stage.index("s3://control/runs/0"), "runs": 1})
    stage.answers("job", 1, 1, 0)
    left = [{"open": number, "terminal": 0, "held": 0} for number in (2, 1, 0)]
    stage.answers("stub-run-status", *left)
    assert stage.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(stage.calls("job")) == 3


def test_a_failed_run_does_not_stop_the_others(stage: Stage) -> None:
    stage.answers("stub-plan", stage.index(*(f"s3://control/runs/{number}" for number in range(3))))
    stage.answers("job", 1, 0, 0)
    assert stage.run("overnight", {})["status"] == "SUCCEEDED"
    assert len({call["run"] for call in stage.calls("job")}) == 3


def test_no_verdict_while_a_lease_is_live(stage: Stage) -> None:
    stage.answers("stub-settle", verdict("OPEN", "still worked on"), verdict("SUCCEEDED", "done"))
    assert output(stage.run("overnight", {}))["verdict"] == "SUCCEEDED"
    assert len(stage.calls("stub-settle")) == 2


def test_a_lease_that_never_ends_fails_the_night(stage: Stage) -> None:
    stage.answers("stub-settle", verdict("OPEN", "still worked on"))
    end = stage.run("overnight", {})
    assert (end["status"], end["error"]) == ("FAILED", "OvernightOPEN")
    assert len(stage.calls("stub-settle")) == 3


def test_an_index_that_cannot_be_read_is_judged_by_the_ledger(stage: Stage) -> None:
    stage.answers("stub-plan", {"runs": 1, "maxConcurrency": 1, "index": {"bucket": "stubs", "key": "missing.json"}})
    stage.answers("stub-settle", verdict("FAILED", "nothing was converted"))
    end = stage.run("overnight", {})
    assert (end["status"], end["error"]) == ("FAILED", "OvernightFAILED")


def test_the_tables_do_not_change_the_verdict(stage: Stage) -> None:
    stage.answers("stub-catalog", {"raise": "InvalidDocumentError", "message": "no such database"})
    assert output(stage.run("overnight", {}))["verdict"] == "SUCCEEDED"


def test_backfill_finds_everything_and_does_a_nights_work(stage: Stage) -> None:
    # Given a search that takes two calls.
    first, last = {**TOTALS, "found": 2, "token": "next"}, {**TOTALS, "token": None}
    stage.answers("stub-backfill", REQUEST, first, last)
    # When a person starts it.
    result = output(stage.run("backfill", {"dataset": "orders"}))
    # Then the second call went on where the first had ended, and the night got the range.
    validate, *finds = stage.calls("stub-backfill")
    assert validate == {"action": "validate", "input": {"dataset": "orders"}}
    assert [(call["action"], call["request"], call["token"]) for call in finds] == [
        ("find", REQUEST, None),
        ("find", REQUEST, "next"),
    ]
    (plan,) = stage.calls("stub-plan")
    assert {key: plan[key] for key in plan if key != "execution"} == {
        "dataset": "orders",
        "from": "2026-11-01T00",
        "to": "2026-11-02T23",
    }
    assert result["search"] == TOTALS
    assert result["overnight"]["verdict"] == "SUCCEEDED"


def test_a_dry_backfill_only_plans(stage: Stage) -> None:
    stage.answers("stub-backfill", {**REQUEST, "dryRun": True}, {**TOTALS, "token": None})
    stage.answers("stub-plan", {"runs": 4})
    end = stage.run("backfill", {"dataset": "orders", "dryRun": True})
    assert output(end) == {"dryRun": True, "search": TOTALS, "plan": {"runs": 4}}
    assert stage.calls("stub-plan") == [{**REQUEST, "dryRun": True, "execution": end["name"]}]
    assert stage.calls("job") == []


def test_a_wrong_backfill_says_what_to_type(stage: Stage) -> None:
    stage.answers("stub-backfill", {"raise": "InvalidInputError", "message": "from is later than to: swap them"})
    end = stage.run("backfill", {"from": "2026-12-01", "to": "2026-11-01"})
    assert (end["status"], end["error"], end["cause"]) == (
        "FAILED",
        "InvalidInputError",
        "from is later than to: swap them",
    )


def test_a_backfill_fails_with_the_nights_reason(stage: Stage) -> None:
    stage.answers("stub-backfill", REQUEST, {**TOTALS, "token": None})
    stage.answers("stub-settle", verdict("FAILED", "1 manifests failed"))
    end = stage.run("backfill", {})
    assert (end["status"], end["error"]) == ("FAILED", "BackfillFailed")
    assert end["cause"]


def test_the_window_watches_then_stops_the_stream(stage: Stage) -> None:
    # Given a window that is over at the second look, and a run that ends after one more round.
    open_, over = ({"running": True, "windowOver": value, "stopped": False} for value in (False, True))
    stage.answers("stub-stream-control", open_, open_, over, over, {**over, "running": False, "stopped": True})
    assert stage.run("stream_window", {})["status"] == "SUCCEEDED"
    assert [call["action"] for call in stage.calls("stub-stream-control")] == [
        "start",
        "watch",
        "watch",
        "stop",
        "stop",
    ]


def test_a_run_that_does_not_stop_in_time_is_killed(stage: Stage) -> None:
    stage.answers("stub-stream-control", {"running": True, "windowOver": True, "stopped": False})
    assert stage.run("stream_window", {})["status"] == "SUCCEEDED"
    assert [call["action"] for call in stage.calls("stub-stream-control")] == ["start", "stop", "stop", "stop", "kill"]
