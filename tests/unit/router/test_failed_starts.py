"""A streaming job that dies at its start: started less and less often, then by a person only, with its reason."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from lake.manifest import Lane
from router.route.handler import route
from router.stream.handler import stream_control
from router.stream.runs import MAX_STARTS, FailedStartsError
from router.sweep.manifests import renew_pointers
from router.sweep.repair import Repair
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.stream_actions import act

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.router.conftest import Deployment
    from tests.unit.router.emr import FakeEmr

REASON = "LAUNCH ERROR | the zip of wheels could not be installed"
MINUTE = timedelta(minutes=1)
WINDOW = 9 * 60
"""Minutes."""


def watch_a_window(deployment: Deployment, runs: Callable[[], int], die: Callable[[], None]) -> list[str]:
    """A window that is watched each minute, in which every run dies at once; the errors of the watches."""
    errors, started = list[str](), list[datetime]()
    act(deployment, "start")
    for _ in range(WINDOW):
        if runs() > len(started):
            started.append(deployment.now)
        die()
        deployment.wait(MINUTE)
        try:
            act(deployment, "watch")
        except FailedStartsError as error:
            errors.append(str(error))
    pauses = [(after - before) / MINUTE for before, after in pairwise(started)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    return errors


def check_window(deployment: Deployment, runs: Callable[[], int], errors: list[str]) -> None:
    # Then the third failure has reported why
    assert errors[0].startswith("3 runs of the streaming job stream-job have ended in succession before they began")
    assert REASON in errors[0]
    assert "starts at 2026-11-20T09:37:00.000+00:00: remove the cause, then run 'hybrid-router" in errors[0]
    # And in the end only a person's command starts it
    assert errors[-1].startswith(f"{MAX_STARTS} runs of")
    assert "no other run is started by itself" in errors[-1]
    row = deployment.ledger.stream.get()
    assert (row.starts, REASON in str(row.start_failure)) == (MAX_STARTS, True)
    assert not act(deployment, "start")["running"]
    assert runs() == MAX_STARTS
    assert stream_control({"action": "start", "manual": True}, deployment.services)["running"]
    assert runs() == MAX_STARTS + 1
    # When that one works, Then the failures are forgotten
    deployment.ledger.stream.begin_run("jr_9", deployment.now)
    row = deployment.ledger.stream.get()
    assert (row.starts, row.start_failure) == (0, None)


def die_on_glue(deployment: Deployment) -> Callable[[], None]:
    def die() -> None:
        runs = deployment.glue.runs["stream-job"]
        for run in runs:
            runs[run] = "FAILED"
            deployment.glue.bills[run] = {"ErrorMessage": REASON}

    return die


def test_a_job_that_dies_at_its_start_on_glue(deployment: Deployment) -> None:
    def runs() -> int:
        return len(deployment.glue.runs["stream-job"])

    check_window(deployment, runs, watch_a_window(deployment, runs, die_on_glue(deployment)))


def test_a_job_that_dies_at_its_start_on_emr(deployment: Deployment, emr: FakeEmr) -> None:
    def die() -> None:
        emr.end("FAILED")
        for run in emr.runs.values():
            run["stateDetails"] = REASON

    def runs() -> int:
        return len(emr.runs)

    check_window(deployment, runs, watch_a_window(deployment, runs, die))


def test_files_that_arrive_start_it_no_more_often_and_a_sweep_reports_why(deployment: Deployment) -> None:
    # Given urgent files, in the first minutes of which each run dies
    die, runs = die_on_glue(deployment), deployment.glue.runs.setdefault("stream-job", {})
    deployment.wait(timedelta(hours=12))
    for minutes in (0, 0, 0, 1, 0, 2, 0, 3):
        deployment.wait(minutes * MINUTE)
        event = batch(message("m", s3_record(f"clicks/urgent/{deployment.now:%M}.json")))
        assert failures(route(event, deployment.services)) == []
        die()
    assert len(runs) == 3
    # When a sweep finds one that waits, Then it does not start a run either, and its error has the reason
    stream = deployment.ledger.stream
    stream.count_start(stream.get(), "jr_4", deployment.now + timedelta(hours=1))
    runs["jr_4"] = "FAILED"
    deployment.queued("late.json", lane=Lane.STREAM)
    deployment.wait(timedelta(hours=1))
    repair = Repair(deployment.services, deployment.now + timedelta(hours=1))
    renew_pointers(repair)
    assert ([type(error) for error in repair.errors], len(runs)) == ([FailedStartsError], 4)
    assert deployment.ledger.stream.get().start_failure == "FAILED, without a reason"


def test_a_slow_start_is_no_failure(deployment: Deployment) -> None:
    act(deployment, "start")
    for _ in range(30):
        deployment.wait(MINUTE)
        assert act(deployment, "watch")["running"]
    assert deployment.ledger.stream.get().starts == 1


def test_a_run_that_has_worked_is_replaced_at_once(deployment: Deployment) -> None:
    act(deployment, "start")
    for number in range(1, 6):
        deployment.ledger.stream.begin_run(f"jr_{number}", deployment.now)
        deployment.glue.runs["stream-job"][f"jr_{number}"] = "FAILED"
        assert act(deployment, "watch")["running"]
    assert len(deployment.glue.runs["stream-job"]) == 6
