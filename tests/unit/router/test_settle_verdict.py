"""The verdict: outcome, message, quarantine content, what a person is notified of, and the page about the execution."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.ledger import ManifestRow, PublishedTotals, State
from lake.ledger.costs import Executions
from lake.ledger.manifest_row import NO_OBJECTS, Published
from lake.manifest import Lane, Partition
from lake.time import iso_utc
from report.figures import ManifestFigures
from router.plan.handler import plan
from router.settle import handler
from router.settle.published import UnreadableFile
from router.settle.verdict import (
    MAX_NAMED_DATASETS,
    MAX_NAMED_MANIFESTS,
    MAX_QUOTED_CHARACTERS,
    ExecutionOutcome,
    Tally,
    Verdict,
    format_notification,
    format_quarantine,
    judge_execution,
    minutes_late,
    should_notify,
)
from tests.unit.lake.world import DOCUMENT, LEASE, MORNING
from tests.unit.report.reporting import cost_row
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import document
from tests.unit.router.settling import done, planned, settled

LEASED = int((MORNING + LEASE).timestamp() * 1000)


def counted(rows: int, rejects: int, failed_files: int = 0, dataset: str = "orders") -> ManifestRow:
    """A DONE manifest of four files."""
    reasons = {"not JSON": rejects} if rejects else {}
    totals = PublishedTotals(rows, reasons, failed_files, NO_OBJECTS, NO_OBJECTS, 1000)
    partition, published = Partition(dataset, "2026-11-20", 9), Published(1, DOCUMENT, totals)
    at = MORNING.isoformat()
    return ManifestRow("m", State.DONE, Lane.BATCH, partition, at, 400, 4, changed_at=at, published=published)


ROW = counted(0, 0)
WAITING = replace(ROW, state=State.QUEUED)


def tallied(*rows: ManifestRow) -> Tally:
    tally = Tally(now=MORNING)
    for row in rows:
        tally.add(row)
    return tally


def judged(rows: list[ManifestRow]) -> Verdict:
    return judge_execution(tallied(*rows))


@pytest.mark.parametrize(
    ("rows", "outcome", "message"),
    [
        ([], "EMPTY", "nothing was waiting"),
        ([ROW], "SUCCEEDED", "its manifest is done: 0 rows"),
        (
            [counted(3, 2, 1)],
            "SUCCEEDED_WITH_QUARANTINE",
            "its manifest is done: 3 rows; 2 lines could not become a row and are in the quarantine; 1 file could not "
            "be read and is in the quarantine by reference",
        ),
        (
            [counted(3, 2, 1), replace(ROW, state=State.FAILED, reason="gone")],
            "FAILED",
            "1 manifest failed (first: m, gone); 2 lines could not become a row and are in the quarantine; 1 file "
            "could not be read and is in the quarantine by reference",
        ),
        ([ROW, replace(ROW, state=State.RUNNING, lease_until=LEASED)], "OPEN", "1 manifest is still being"),
        ([ROW, replace(ROW, state=State.RUNNING, lease_until=0)], "FAILED", "1 manifest is not done (first: m, RUN"),
        # The first manifest with a reason is quoted.
        (
            [WAITING, replace(WAITING, id="d", reason="denied"), replace(WAITING, reason="lease expired")],
            "FAILED",
            "3 manifests are not done (first: d, QUEUED, denied): ",
        ),
        ([ROW, replace(ROW, state=State.PUBLISHING)], "OPEN", "1 manifest is still"),
        (
            [replace(ROW, state=State.PUBLISHING, changed_at=(MORNING - timedelta(hours=1)).isoformat())],
            "FAILED",
            "1 manifest is not done (first: m, PUBLISHING): run 'hybrid-router overnight' to",
        ),
        ([ROW, replace(ROW, state=State.FAILED, reason="gone")], "FAILED", "1 manifest failed (first: m, gone)"),
        (
            [replace(ROW, state=State.FAILED), replace(ROW, state=State.RUNNING, lease_until=LEASED)],
            "OPEN",
            "1 manifest is still",
        ),
    ],
)
def test_the_verdict_follows_the_ledger(rows: list[ManifestRow], outcome: str, message: str) -> None:
    verdict = judged(rows)
    assert verdict.outcome == outcome
    assert verdict.message.startswith(message)


@pytest.mark.parametrize(
    ("verdict", "settings"),
    [
        (judged([counted(3, 0)]), []),
        (judged([]), []),
        (judged([counted(3, 1)]), ["lines"]),
        (judged([counted(3, 0, failed_files=1)]), ["files", "lines"]),
        (judged([replace(ROW, state=State.FAILED)]), ["never", "files", "lines"]),
        (judged([replace(ROW, state=State.PUBLISHING)]), ["never", "files", "lines"]),
    ],
    ids=["whole", "empty", "lines", "files", "failed", "open"],
)
def test_the_setting_decides_who_hears_of_the_quarantine_and_of_no_failure(
    verdict: Verdict, settings: list[str]
) -> None:
    assert [setting for setting in ("never", "files", "lines") if should_notify(verdict, setting)] == settings


def test_a_verdict_has_a_bounded_size_whatever_the_outcome_of_the_night() -> None:
    # Given: a night in which everything has failed
    rows = [replace(ROW, id=f"m{number}", state=State.FAILED, reason="x" * 5000) for number in range(1000)]
    # When
    tally = tallied(*rows)
    # Then
    assert (tally.failed, len(tally.not_done)) == (1000, MAX_NAMED_MANIFESTS)
    assert len(judge_execution(tally).message) < 2 * MAX_QUOTED_CHARACTERS


@pytest.mark.parametrize(
    ("row", "share"),
    [
        (counted(0, 0), 0),
        (counted(95, 5), 0.05),
        (counted(0, 793), 1),
        (counted(100, 0, failed_files=1), 0.25),
        (counted(50, 50, failed_files=1), 0.5),
    ],
)
def test_the_share_is_computed_from_the_lines_or_the_files(row: ManifestRow, share: float) -> None:
    assert tallied(row).above(-1) == [(share, "orders")]


def test_the_message_counts_the_datasets_above_the_share_and_names_the_first() -> None:
    # Given: five datasets that lose everything, and one that loses one line in 20
    tally = tallied(*(counted(0, 793, dataset=name) for name in "abcde"), counted(19, 1, dataset="f"))
    # When
    verdict = judge_execution(tally, 0.05)
    # Then
    assert verdict.outcome == "SUCCEEDED_WITH_QUARANTINE"
    assert verdict.datasets_above_share == 5
    assert verdict.message.endswith(
        "more than alarms.max_quarantined_share of 5 datasets is in the quarantine (a: 100 %, b: 100 %, c: 100 % and 2 "
        "more)"
    )
    assert judge_execution(tally, 1).datasets_above_share == 0


def test_the_document_lists_the_datasets_with_most_lines_in_the_quarantine_first() -> None:
    rows = [counted(1, number, dataset=f"d{number}") for number in range(MAX_NAMED_DATASETS + 1)]
    listed = tallied(*rows).datasets_to_json()
    assert (len(listed), listed[0]["dataset"], listed[0]["rejects"]) == (200, "d200", {"not JSON": 200})
    assert [listed[0][name] for name in ("done", "failed", "open", "files", "bytes", "rows")] == [1, 0, 0, 4, 400, 1]


def test_the_verdict_document_names_datasets_and_unreadable_files(deployment: Deployment) -> None:
    # Given: a night with a manifest that lost two lines and a file
    (row,) = planned(deployment, "a")
    done(deployment, row, rows=3, rejects=2, unreadable="s3://input/orders/b")
    # When
    answer = settled(deployment)
    # Then
    verdict = document(deployment, answer["verdictUri"])
    found = [(each["dataset"], each["rows"], each["rejects"], each["failed_files"]) for each in verdict["datasets"]]
    assert found == [("orders", 3, {"not JSON": 2}, 1)]
    assert verdict["unreadableFiles"] == [
        {"uri": "s3://input/orders/b", "version": "v1", "manifest": row.id, "reason": "it was deleted"}
    ]
    assert answer["datasetsAboveShare"] == 1
    assert "Quarantined lines: 2 not JSON.\nUnreadable: s3://input/orders/b: it was deleted" in answer["notification"]


def test_the_notification_names_a_few_files_in_one_line_each() -> None:
    files = [UnreadableFile(f"s3://input/{number}\n", "v1", "m", "why") for number in range(11)]
    lines = format_quarantine({"not JSON": 2, "too long": 3}, files)
    assert lines[0] == "Quarantined lines: 3 too long, 2 not JSON."
    assert (len(lines), lines[1]) == (11, "Unreadable: s3://input/0\\n: why")
    assert format_quarantine({}, []) == []


def test_a_command_in_the_reason_of_a_file_names_the_stage() -> None:
    line = "Unreadable: s3://input/a b: it is archived, then run: hybrid-router reprocess 's3://input/a b'"
    assert f"{line} --stage prod\n" in notification(ExecutionOutcome.FAILED, line)


LOOK = "- See its datasets, what failed and why, and the logs: hybrid-router night x --stage prod"
REPROCESS = "hybrid-router reprocess"
QUARANTINE = "hybrid-router quarantine ls --stage prod"


def notification(outcome: ExecutionOutcome, *details: str, **counts: int) -> str:
    numbers = dict.fromkeys(("done", "failed", "open", "rows", "rejects", "failed_files", "damaged_objects"), 0)
    numbers["datasets_above_share"] = 0
    verdict = Verdict(outcome, **{**numbers, **counts}, message="what happened")
    return format_notification("x", verdict, details, stage="prod")


@pytest.mark.parametrize(
    ("outcome", "counts", "named", "not_named"),
    [
        ("FAILED", {"failed": 1}, [LOOK, f"{REPROCESS} --manifest <id> --stage prod"], ["quarantine ls"]),
        ("FAILED", {"open": 1}, [LOOK], ["status", REPROCESS]),
        ("OPEN", {"open": 1}, [LOOK, "hybrid-router status --stage prod"], []),
        ("SUCCEEDED_WITH_QUARANTINE", {"rejects": 1}, [QUARANTINE, "hybrid-router explain"], [REPROCESS]),
        ("SUCCEEDED_WITH_QUARANTINE", {"failed_files": 1}, [QUARANTINE, f"{REPROCESS} s3://"], []),
    ],
)
def test_each_finding_has_its_next_step(
    outcome: str, counts: dict[str, int], named: list[str], not_named: list[str]
) -> None:
    text = notification(ExecutionOutcome(outcome), **counts)
    assert [step for step in named if step not in text] == []
    assert [step for step in not_named if step in text] == []


DEADLINE = {"deadline": MORNING.isoformat()}


@pytest.mark.parametrize(
    ("plan", "minutes", "late"), [({"runs": 1}, 5, 0), (DEADLINE, -1, 0), (DEADLINE, 0.9, 0), (DEADLINE, 34, 34)]
)
def test_an_end_after_the_deadline_is_late(plan: dict[str, Any], minutes: float, late: int) -> None:
    assert minutes_late(plan, MORNING + timedelta(minutes=minutes)) == late


def test_settle_notifies_of_a_late_end(deployment: Deployment) -> None:
    # Given: an execution that is done after its deadline, 06:00 in Berlin
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10)
    deployment.wait(timedelta(hours=20))
    # When
    answer = settled(deployment)
    # Then: it has succeeded, and a person is notified
    assert (answer["verdict"], answer["notify"]) == ("SUCCEEDED", True)
    lines = answer["notification"].splitlines()
    assert any(line.startswith("It ended 30 minutes after its deadline 2026-11-21T05:00") for line in lines)
    assert [line for line in lines if line.startswith("- ")] == [
        "- See its datasets, what failed and why, and the logs: hybrid-router night overnight --stage test"
    ]
    # And the document has it for programs
    assert document(deployment, answer["verdictUri"])["lateMinutes"] == 30


KEY = "plans/overnight/report.html"
COMMAND = "hybrid-router report --execution overnight --stage test"


def settled_night(deployment: Deployment) -> str:
    """One manifest with rejects is done; return the notification."""
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10, 2)
    answer = settled(deployment)
    assert answer["verdict"] == "SUCCEEDED_WITH_QUARANTINE"
    return str(answer["notification"])


def test_the_page_has_the_numbers_of_the_verdict_and_the_costs(deployment: Deployment) -> None:
    # Given
    at = iso_utc(deployment.now)
    deployment.ledger.costs.record(cost_row(execution="overnight", started_at=at, ended_at=at))
    deployment.ledger.costs.record(cost_row("other", execution="another", started_at=at, ended_at=at))
    # When
    notification = settled_night(deployment)
    # Then
    answer = deployment.raw_s3.get_object(Bucket="control", Key=KEY)
    page = answer["Body"].read().decode()
    assert answer["ContentType"] == "text/html; charset=utf-8"
    for words in (">10</b><span>rows published", ">2</b><span>lines in the q", ">$2.00</b>", "SUCCEEDED_WITH_Q"):
        assert words in page
    assert "hybrid-router report --stage test&#x27; reads them" in page
    assert notification.endswith(f"\n\nReport: {COMMAND}")


def test_the_next_plan_expects_the_waiting_of_the_last_nights(deployment: Deployment) -> None:
    # Given job runs of an execution on Flex: two waited for 7 and 8 minutes, and one found no capacity
    deployment.configure(batch={"engines": ["glue-flex"]})
    (row,) = planned(deployment, "a.json")
    expected = forecast_of(deployment)
    begin = deployment.now
    for number, (waited, worked) in enumerate([(420, 600), (480, 900), (1200, 0)]):
        ended = iso_utc(begin + timedelta(seconds=waited + worked))
        deployment.ledger.costs.record(
            cost_row(
                f"run-{number}",
                engine="glue-flex",
                execution="overnight",
                seconds=worked,
                started_at=iso_utc(begin),
                ended_at=ended,
            )
        )
    done(deployment, row, 10, 0)
    deployment.wait(timedelta(hours=1))
    settled(deployment)
    # When the next night is planned
    planned(deployment, "b.json")
    # Then a run begins after 7.5 minutes instead of the assumed 6
    assert forecast_of(deployment) == pytest.approx(expected + 1.5, abs=0.1)
    # When these nights are long ago
    deployment.wait(timedelta(days=9))
    assert forecast_of(deployment) == pytest.approx(expected, abs=0.1)


def forecast_of(deployment: Deployment) -> float:
    """The minutes that a plan of the backlog expects."""
    return float(plan({"execution": "dry", "dryRun": True}, deployment.services)["forecast"]["minutes"])


@pytest.mark.parametrize(("where", "name"), [(handler, "render_page"), (ManifestFigures, "add")])
def test_a_fault_of_the_page_does_not_change_the_verdict(deployment: Deployment, where: object, name: str) -> None:
    deployment.patch.setattr(where, name, Mock(side_effect=ValueError("a defect")))
    assert settled_night(deployment).endswith(f"\n\nReport: {COMMAND}")


def test_an_execution_whose_page_meets_a_passing_fault_is_settled_again(deployment: Deployment) -> None:
    # Given
    slow = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "UpdateItem")
    with deployment.patch.context() as patch:
        patch.setattr(Executions, "record_settled", Mock(side_effect=slow))
        with pytest.raises(ClientError):
            settled_night(deployment)
    # When the state machine repeats it, then the execution is listed
    settled(deployment)
    today = deployment.now.date()
    assert [facts["outcome"] for facts in deployment.ledger.executions.settled(today, today)] == [
        "SUCCEEDED_WITH_QUARANTINE"
    ]


def test_the_page_of_the_last_days_names_each_execution_and_its_reason(deployment: Deployment) -> None:
    # Given an execution that has ended with a manifest in progress, which failed later
    (row,) = planned(deployment, "a.json")
    deployment.claimed(row)
    assert settled(deployment)["notification"].endswith(f"\n\nReport: {COMMAND}")
    today = deployment.now.date()
    assert [facts["outcome"] for facts in deployment.ledger.executions.settled(today, today)] == ["OPEN"]
    deployment.ledger.manifests.fail(deployment.row(row.id), "<b>it is broken", deployment.now)
    # When it is settled twice
    for _ in range(2):
        settled(deployment)
    # Then it is reported once, with the link to its report
    page = deployment.raw_s3.get_object(Bucket="control", Key="plans/index.html")["Body"].read().decode()
    assert page.count('href="overnight/report.html"') == 1
    assert ">FAILED</span>" in page
    assert "&lt;b&gt;it is broken" in page
