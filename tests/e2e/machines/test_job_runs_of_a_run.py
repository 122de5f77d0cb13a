"""How many job runs a run of the plan gets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.e2e.machines.conftest import verdict

if TYPE_CHECKING:
    from tests.e2e.machines.conftest import StubbedMachines


def test_a_held_manifest_is_waited_for_without_a_glue_run(stubbed: StubbedMachines) -> None:
    # Given a run that leaves a manifest open, because another run holds it and converts it.
    stubbed.set_answers("stub-run-status", {"open": 1, "terminal": 0, "held": 1}, {"open": 0, "terminal": 1, "held": 0})
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(stubbed.calls("job")) == 2


def test_waiting_for_another_run_is_limited(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-run-status", {"open": 1, "terminal": 0, "held": 1})
    stubbed.run("overnight", {})
    # Then there were held_rounds rounds.
    assert len(stubbed.calls("job")) == 3


def test_what_a_job_run_was_denied_starts_no_further_one(stubbed: StubbedMachines) -> None:
    # Given a job that leaves two manifests, and then the one that it was denied
    stubbed.set_answers("job", 1)
    status = {"terminal": 0, "held": 0, "denied": 1}
    stubbed.set_answers("stub-run-status", {"open": 2, **status}, {"open": 1, **status})
    stubbed.run("overnight", {})
    assert len(stubbed.calls("job")) == 2


def test_a_job_that_fails_without_progress_runs_max_attempts_times(stubbed: StubbedMachines) -> None:
    # Given a job that always fails, and no other run that holds its manifests.
    stubbed.set_answers("job", 1)
    stubbed.set_answers("stub-run-status", {"open": 1, "terminal": 0, "held": 0})
    stubbed.set_answers("stub-settle", verdict("FAILED", "1 manifest is not done", notify=True))
    end = stubbed.run("overnight", {})
    # Then it ran max_attempts times, the verdict fails the execution, and people are notified.
    assert len(stubbed.calls("job")) == 2
    assert (end["status"], end["error"]) == ("FAILED", "OvernightFAILED")
    assert end["cause"] == "1 manifest is not done. See s3://control/verdict.json"
    assert stubbed.take_notifications() == ["FAILED: 1 manifest is not done"]
    # And the function that looks at the run learns of each how it ended.
    for call in stubbed.calls("stub-run-status"):
        assert re.fullmatch(r"States.TaskFailed: jr_\w+ FAILED \S.*", call["failure"])
        assert call["refusal"] == ""
