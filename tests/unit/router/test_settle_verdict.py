"""The verdict on an execution: outcome, message, and whether a person is notified."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lake.ledger import ManifestRow, PublishedTotals, State
from lake.ledger.manifest_row import NO_OBJECTS
from lake.manifest import Lane
from router.settle.published import MAX_NAMED_OBJECTS, Damage, DamagedObject
from router.settle.tally import MAX_NAMED_MANIFESTS, Tally
from router.settle.verdict import MAX_QUOTED_CHARACTERS, Verdict, judge, should_notify
from tests.unit.lake.world import LEASE, MORNING, PARTITION

ROW = ManifestRow("m", State.DONE, Lane.BATCH, PARTITION, "", 1, 1, changed_at=MORNING.isoformat())
LEASED = int((MORNING + LEASE).timestamp() * 1000)


def judged(rows: list[ManifestRow], totals: PublishedTotals | None = None, *damage: Damage) -> Verdict:
    tally = Tally(now=MORNING)
    for row in rows:
        tally.add(row)
    if totals is not None:
        tally.add_totals(ROW, totals)
    for found in damage:
        tally.add_damage(found)
    return judge(tally)


def counts(rows: int, rejects: int, failed_files: int) -> PublishedTotals:
    return PublishedTotals(rows, {"not JSON": rejects} if rejects else {}, failed_files, NO_OBJECTS, NO_OBJECTS, 1000)


@pytest.mark.parametrize(
    ("rows", "outcome", "message"),
    [
        ([], "EMPTY", "nothing was waiting"),
        ([ROW], "SUCCEEDED", "its manifest is done: 0 rows"),
        ([ROW, replace(ROW, state=State.RUNNING, lease_until=LEASED)], "OPEN", "1 manifest is still being"),
        ([ROW, replace(ROW, state=State.RUNNING, lease_until=0)], "FAILED", "1 manifest is not done (first: m, RUN"),
        ([ROW, replace(ROW, state=State.QUEUED, reason="gave up")], "FAILED", "1 manifest is not done (first: m, Q"),
        ([ROW, replace(ROW, state=State.PUBLISHING)], "OPEN", "1 manifest is still"),
        (
            [replace(ROW, state=State.PUBLISHING, changed_at=(MORNING - timedelta(hours=1)).isoformat())],
            "FAILED",
            "1 manifest is not done (first: m, PUBLISHING): start overnight again",
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
    ("rejects", "failed_files", "quarantine"),
    [
        (2, 0, "2 lines could not become a row and are in the quarantine"),
        (0, 1, "1 file could not be read and is in the quarantine by reference"),
        (
            2,
            1,
            "2 lines could not become a row and are in the quarantine; "
            "1 file could not be read and is in the quarantine by reference",
        ),
    ],
)
def test_what_is_in_the_quarantine_is_in_the_outcome(rejects: int, failed_files: int, quarantine: str) -> None:
    verdict = judged([ROW], counts(3, rejects, failed_files))
    assert verdict.outcome == "SUCCEEDED_WITH_QUARANTINE"
    assert verdict.message == f"its manifest is done: 3 rows; {quarantine}"


def test_what_is_in_the_quarantine_does_not_hide_a_failure() -> None:
    rows = [ROW, replace(ROW, state=State.FAILED, reason="gone")]
    verdict = judged(rows, counts(3, 2, 1))
    assert verdict.outcome == "FAILED"
    assert verdict.message.startswith("1 manifest failed (first: m, gone); 2 lines could not become a row")


@pytest.mark.parametrize(
    ("rejects", "failed_files", "setting", "notified"),
    [
        (0, 0, "lines", False),
        (1, 0, "never", False),
        (1, 0, "files", False),
        (1, 0, "lines", True),
        (0, 1, "never", False),
        (0, 1, "files", True),
        (0, 1, "lines", True),
    ],
)
def test_the_setting_decides_who_hears_of_the_quarantine(
    rejects: int, failed_files: int, setting: str, notified: bool
) -> None:
    verdict = judged([ROW], counts(3, rejects, failed_files))
    assert should_notify(verdict, setting) is notified


@pytest.mark.parametrize("setting", ["never", "files", "lines"])
def test_every_failure_reaches_a_person(setting: str) -> None:
    failed = judged([replace(ROW, state=State.FAILED)])
    still_open = judged([replace(ROW, state=State.PUBLISHING)])
    assert should_notify(failed, setting)
    assert should_notify(still_open, setting)
    assert not should_notify(judged([]), setting)


def test_the_reason_that_names_a_missing_permission_is_quoted_first() -> None:
    # Given: three open manifests, one without a reason, one released, one that the settings of the account stop
    denied = "access denied: grant s3:GetObjectVersion on the input bucket to the jobs' role"
    waiting = replace(ROW, state=State.QUEUED)
    rows = [waiting, replace(waiting, reason="lease expired"), replace(waiting, id="d", reason=denied)]
    # Then
    message = judged(rows).message
    assert message.startswith(f"3 manifests are not done (first: d, QUEUED, {denied}): ")


def test_a_damaged_object_fails_a_verdict_whose_manifests_are_all_done() -> None:
    # Given
    lost = DamagedObject("m", "s3://lake/a.parquet", "is missing")
    # When
    verdict = judged([ROW], counts(3, 2, 1), Damage(2, (lost,)))
    # Then
    assert (verdict.outcome, verdict.damaged_objects) == ("FAILED", 2)
    assert verdict.message.startswith("2 published objects are damaged (first: s3://lake/a.parquet is missing): ")


def test_a_verdict_has_one_size_whatever_the_night_has_come_to() -> None:
    # Given: a night of which everything has failed, and every object was deleted
    rows = [replace(ROW, id=f"m{number}", state=State.FAILED, reason="x" * 5000) for number in range(1000)]
    lost = Damage(30, tuple(DamagedObject("m", f"s3://lake/{number}", "is missing") for number in range(20)))
    tally = Tally(now=MORNING)
    # When
    for row in rows:
        tally.add(row)
        tally.add_damage(lost)
    # Then
    assert (tally.failed, len(tally.not_done)) == (1000, MAX_NAMED_MANIFESTS)
    assert (tally.damaged_objects, len(tally.damaged)) == (30_000, MAX_NAMED_OBJECTS)
    assert len(judge(tally).message) < 2 * MAX_QUOTED_CHARACTERS
