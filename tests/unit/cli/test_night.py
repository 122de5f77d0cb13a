"""night and nights: one execution on a page, the latest ones in a list."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cli.change.executions import follow_execution
from cli.errors import ExitCode, NotFoundError
from cli.inspect.executions import execution_arn
from cli.inspect.night import LISTS, night_command, nights_command
from lake.errors import InvalidDocumentError
from lake.layout import plan_summary_key, verdict_key
from lake.ledger import CostShare
from lake.time import iso_utc
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import MACHINE, NIGHT, FakeServices, execution, put_summary, stack_of
from tests.unit.lake.world import World, done
from tests.unit.report.reporting import cost_row

PLANNED = {"planned_at": iso_utc(NIGHT)}
VERDICT = {"outcome": "SUCCEEDED_WITH_QUARANTINE", "rows": 101, "rejects": 793, "failed_files": 1, "done": 2}
DATASET = {
    "dataset": "orders",
    "done": 2,
    "failed": 0,
    "open": 0,
    "files": 3,
    "bytes": 4_500,
    "rows": 101,
    "rejects": {"not JSON": 793},
    "failed_files": 1,
}
KILLED = "Executor lost\nrun 'hybrid-router failures --stage dev'"
NOT_DONE = {
    "manifest": "m2",
    "partition": "orders#2026-11-19T20\x1b",
    "state": "FAILED",
    "reason": "the disk is full; run 'hybrid-router reprocess --manifest m2'",
}
REASON = "it is archived, then run: hybrid-router reprocess s3://input/orders/b"
UNREADABLE = {"uri": "s3://input/orders/b\n", "version": "v1", "manifest": "m1", "reason": REASON}


def night(world: World, name: str, **verdict: Any) -> dict[str, Any]:
    """Record a whole night in ledger and control bucket; return the execution as Step Functions lists it."""
    put_summary(world, name)
    plan = {**PLANNED, "manifests": 2, "files": 3, "bytes": 4_500, "micro_dollars": 12_500_000}
    world.ledger.executions.record(name, "plan", plan)
    world.ledger.executions.record(name, "verdict", {**VERDICT, **verdict})
    body = {
        "message": "all 2 manifests are done",
        "failed": 0,
        "open": 0,
        "damagedObjects": 0,
        "rejectsByReason": {"not JSON": 793},
        "datasets": [DATASET],
        "unreadableFiles": [UNREADABLE],
        "notDone": [NOT_DONE],
        "damaged": [],
    }
    world.raw_s3.put_object(Bucket="control", Key=verdict_key(name), Body=json.dumps(body).encode())
    costs: dict[str, Any] = {"seconds": 1800, "micro_dollars": 500_000, "shares": (CostShare("orders", 500_000),)}
    begun, ended = (f"2026-11-19T21:{minute}:00.000+00:00" for minute in ("02", "32"))
    costs |= {"started_at": begun, "ended_at": ended, "state": "FAILED"}
    for run, of in (("jr_1", name), ("jr_other", "other")):
        reason = KILLED.replace(" --stage dev", "")
        world.ledger.costs.record(cost_row(f"{run}-{name}", execution=of, reason=reason, **costs))
    return execution(name)


def running(world: World, name: str) -> dict[str, Any]:
    """A night whose job run ``jr_1`` has published one of three manifests and works on the second one."""
    rows = [world.queued(f"{number}.ndjson") for number in range(3)]
    put_summary(world, name, [row.id for row in rows])
    world.ledger.executions.record(name, "plan", PLANNED)
    done(world, rows[0])
    world.claimed(rows[1])
    return execution(name, "RUNNING")


Shown = Callable[..., Any]


@pytest.fixture
def shown(world: World, answered: Answered) -> Shown:
    """What is known about an execution of these manifests."""
    command = partial(answered, night_command, code=ExitCode.OK, schema="night")
    return lambda services, *which: command(stack_of(world, services), *which)


def test_a_night_compares_plan_and_outcome(world: World, shown: Shown) -> None:
    document = shown(FakeServices([night(world, "n1")]))
    assert (document["outcome"], document["plan"]["dollars"]) == (VERDICT["outcome"], 12.5)
    assert (document["dollars"], document["workMinutes"]) == (0.5, 30)
    (run,) = document["jobRuns"]
    assert (run["state"], run["reason"]) == ("FAILED", KILLED)
    assert run["log"] == "hybrid-router logs batch --run jr_1-n1 --since 30d --stage dev"
    (dataset,) = document["verdict"]["datasets"]
    assert (dataset["dataset"], dataset["rejects"], dataset["failedFiles"]) == ("orders", {"not JSON": 793}, 1)
    (left,) = document["verdict"]["notDone"]
    assert left["reason"].endswith("run 'hybrid-router reprocess --manifest m2 --stage dev'")


def test_a_night_that_runs_shows_how_far_it_is(world: World, shown: Shown, printed: Printed) -> None:
    services = FakeServices([running(world, "n1")])
    progress = shown(services)["progress"]
    assert [progress[name] for name in ("manifests", "done", "running", "failed")] == [3, 1, 1, 0]
    assert progress["jobRuns"] == [{"jobRun": "jr_1", "done": 1, "running": 1}]
    assert "1 of 3 manifests done, 100 B of 300 B" in printed(night_command, stack_of(world, services))


@pytest.mark.parametrize(
    ("status", "code"), [("RUNNING", ExitCode.OK), ("FAILED", ExitCode.NEGATIVE), ("ABORTED", ExitCode.NEGATIVE)]
)
def test_a_night_that_has_ended_while_a_manifest_was_worked_on_has_failed(
    world: World, status: str, code: ExitCode
) -> None:
    night(world, "n1", outcome="OPEN")
    stack = stack_of(world, FakeServices([execution("n1", status)]))
    assert night_command(stack, "last").code == code


def test_the_page_names_files_and_reasons(world: World, printed: Printed) -> None:
    services = FakeServices([night(world, "n1")])
    text = printed(night_command, stack_of(world, services), "last", code=ExitCode.OK)
    assert text.startswith("n1: SUCCEEDED_WITH_QUARANTINE\n")
    assert "quarantined lines: 793 not JSON\n" in text
    assert f"unreadable file s3://input/orders/b\\n: {REASON} --stage dev\n" in text
    advice = "run 'hybrid-router reprocess --manifest m2 --stage dev'"
    assert f"FAILED m2 orders#2026-11-19T20\\x1b: the disk is full; {advice}\n" in text
    assert "FAILED jr_1-n1: Executor lost\\nrun 'hybrid-router failures --stage dev'\n" in text
    assert "log of jr_1-n1: hybrid-router logs batch" in text
    assert [cell for cell in ("$12.50", "$0.5000", "30 min", "4.5 kB") if cell not in text] == []


def test_lists_are_limited(world: World, printed: Printed) -> None:
    services = FakeServices([night(world, "n1")])
    text = printed(night_command, stack_of(world, services), "last", 0)
    assert "... and 4 more: pass a larger --limit\n" in text
    assert "jr_1" not in text


def test_a_damaged_verdict_is_named(world: World) -> None:
    services = FakeServices([night(world, "n1")])
    for body in ({"message": ""}, {**{name: [{}] for name in LISTS.values()}, "message": "", "rejectsByReason": {}}):
        world.raw_s3.put_object(Bucket="control", Key=verdict_key("n1"), Body=json.dumps(body).encode())
        with pytest.raises(InvalidDocumentError, match=r"n1/verdict\.json is damaged: restore the object"):
            night_command(stack_of(world, services), "last")
    # And so is a damaged plan
    summary = b'{"forecast": {}, "plannedAt": "", "manifestIds": []}'
    world.raw_s3.put_object(Bucket="control", Key=plan_summary_key("n1"), Body=summary)
    world.raw_s3.delete_object(Bucket="control", Key=verdict_key("n1"))
    with pytest.raises(InvalidDocumentError, match=r"n1/plan\.json is damaged: restore the object"):
        night_command(stack_of(world, services), "last")


def test_a_date_is_the_stages_local_date_on_which_the_night_began(world: World, shown: Shown) -> None:
    # Given: two nights; the newer one began after midnight in Berlin and before midnight UTC
    late = {**night(world, "n2"), "startDate": datetime(2026, 11, 20, 23, 30, tzinfo=UTC)}
    late["stopDate"] = late["startDate"] + timedelta(hours=1)
    services = FakeServices([late, night(world, "n1")])
    # Then
    assert shown(services, "2026-11-21")["execution"] == "n2"
    assert shown(services, "2026-11-19")["execution"] == "n1"
    for other in ("2026-11-20", "2026-W47-4"):
        with pytest.raises(NotFoundError, match=f"named '{other}' or begun on such a day"):
            night_command(stack_of(world, services), other)


def test_an_execution_that_step_functions_has_forgotten_is_in_the_ledger(world: World, shown: Shown) -> None:
    night(world, "old")
    document = shown(FakeServices(), "old")
    assert (document["outcome"], document["status"]) == (VERDICT["outcome"], "UNKNOWN")
    assert [run["jobRun"] for run in document["jobRuns"]] == ["jr_1-old"]


def test_an_execution_without_a_verdict_shows_its_error(world: World, printed: Printed) -> None:
    failed = {**execution("n1", "FAILED"), "error": "InvalidInputError", "cause": "unknown dataset"}
    text = printed(night_command, stack_of(world, FakeServices([failed])), f"{MACHINE}:n1", code=ExitCode.NEGATIVE)
    assert "  InvalidInputError: unknown dataset\n" in text


@pytest.mark.parametrize("which", ["ghost", "no name", "", "2026-13-40", "last"])
def test_an_unknown_execution_is_one_sentence(world: World, which: str) -> None:
    with pytest.raises(NotFoundError, match=r"overnight has no execution .*: 'hybrid-router nights' lists"):
        night_command(stack_of(world, FakeServices()), which)


def test_nights_are_listed_newest_first(world: World, answered: Answered, printed: Printed) -> None:
    newer = {**night(world, "n2"), "startDate": NIGHT + timedelta(minutes=30)}
    services = FakeServices([newer, execution("dry"), night(world, "n1"), night(world, "n0")])
    document = answered(nights_command, stack_of(world, services), 2, schema="nights")
    assert [item["execution"] for item in document["nights"]] == ["n2", "n1"]
    text = printed(nights_command, stack_of(world, services), 2, code=ExitCode.OK)
    assert [cell for cell in ("2026-11-19 22:30", "101\t793", "4.5 kB") if cell not in text] == []
    # And the details of a running night are incomplete
    assert printed(nights_command, stack_of(world, FakeServices([running(world, "n3")])), 2).endswith("\t-\t-\t-\n")


def test_a_night_that_is_followed_prints_job_runs_and_progress(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a running night that has ended at the second poll
    services, states = FakeServices([running(world, "n1")]), iter(("RUNNING", "SUCCEEDED"))
    night(world, "n2")
    rows = world.ledger.costs.of_days(date(2026, 11, 19), date(2026, 11, 19))
    (row,) = (row for row in rows if row.execution == "n2")
    world.ledger.costs.record(replace(row, id="jr_0", execution="n1"))
    # When
    stack = stack_of(world, services)
    follow_execution(stack, execution_arn(stack, "n1"), lambda _: services.executions[0].update(status=next(states)))
    # Then
    lines = [line[10:] for line in capsys.readouterr().err.splitlines()[1:]]
    assert lines == [
        "job run jr_0, glue-flex: FAILED after 30 min: Executor lost\\nrun 'hybrid-router failures --stage dev'",
        "1 of 3 manifests done, 100 B of 300 B, 1 at work: jr_1 (1 done, 1 at work)",
    ]
