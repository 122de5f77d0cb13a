"""Which drafts are enqueued, and which arrivals have another owner, for each answer of the ledger to their rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from lake.ledger import ArrivalRow
from lake.manifest import Lane, ObjectVersion
from router.ownership.outcome import ArrivalOutcome
from router.ownership.owner import Draft, RoutedArrival
from router.ownership.record import RowStamp, record_drafts, record_ignored
from tests.unit.lake.world import PARTITION, file_of

if TYPE_CHECKING:
    from collections.abc import Callable

FILE, OTHER_FILE = file_of("orders/a.json"), file_of("orders/b.json")
STAMP = RowStamp("2026-11-20T09:30:00Z", None, "input")
OWNED, IGNORED, UNSETTLED = ArrivalOutcome.OWNED, ArrivalOutcome.IGNORED, ArrivalOutcome.UNSETTLED
NO_ANSWER = "no answer"
Answer = ArrivalRow | str | None


def row_of(manifest: str | None, file: ObjectVersion = FILE) -> ArrivalRow:
    return ArrivalRow(file, manifest, PARTITION, Lane.BATCH, "test", STAMP.recorded_at)


OWN, ELSEWHERE, DEAD, NO_OWNER = row_of("own"), row_of("other"), row_of("dead"), row_of(None)


def answering(answer: Answer) -> Callable[..., Any]:
    def method(*_: object) -> Any:
        if answer == NO_ANSWER:
            raise ReadTimeoutError(endpoint_url="loopback")
        return answer

    return method


def ledger_of(written: dict[ObjectVersion, Answer], read: Answer) -> Any:
    """Answers to the write of each file's row, and to the read after one without an answer."""

    def write(row: ArrivalRow) -> Any:
        return answering(written[row.file])()

    def adopt(_: ArrivalRow, row: ArrivalRow) -> Any:
        return write(row)

    return SimpleNamespace(arrivals=SimpleNamespace(put=write, adopt=adopt, get=answering(read)))


def recorded(
    adopted: ArrivalRow | None, written: dict[ObjectVersion, Answer], read: Answer
) -> tuple[list[list[ObjectVersion]], list[ArrivalRow]]:
    """The files of each draft to enqueue, and the rows that name another owner."""
    arrivals = tuple(RoutedArrival(file, PARTITION, Lane.BATCH, "test", adopted) for file in written)
    draft = Draft("own", Lane.BATCH, arrivals, urgent=False)
    with ThreadPoolExecutor(1) as pool:
        drafts, elsewhere = record_drafts(ledger_of(written, read), pool, [draft], STAMP)
    return [item.files for item in drafts], elsewhere


@pytest.mark.parametrize(
    ("adopted", "written", "read", "outcome", "elsewhere"),
    [
        (None, OWN, None, OWNED, []),
        (None, ELSEWHERE, None, UNSETTLED, [ELSEWHERE]),
        (None, NO_OWNER, None, UNSETTLED, [NO_OWNER]),
        (None, NO_ANSWER, OWN, OWNED, []),
        (None, NO_ANSWER, ELSEWHERE, UNSETTLED, [ELSEWHERE]),
        (None, NO_ANSWER, None, UNSETTLED, []),
        (None, NO_ANSWER, NO_ANSWER, UNSETTLED, []),
        (DEAD, OWN, None, OWNED, []),
        (DEAD, ELSEWHERE, None, UNSETTLED, [ELSEWHERE]),
        (DEAD, NO_ANSWER, OWN, OWNED, []),
        # The update may still be applied.
        (DEAD, NO_ANSWER, DEAD, UNSETTLED, []),
        (NO_OWNER, NO_ANSWER, NO_OWNER, UNSETTLED, []),
        (DEAD, NO_ANSWER, None, UNSETTLED, []),
        (DEAD, NO_ANSWER, NO_ANSWER, UNSETTLED, []),
    ],
)
def test_a_draft_has_the_file_whose_row_is_known_to_name_it(
    adopted: ArrivalRow | None, written: Answer, read: Answer, outcome: ArrivalOutcome, elsewhere: list[ArrivalRow]
) -> None:
    drafts, other_rows = recorded(adopted, {FILE: written}, read)
    assert drafts == ([[FILE]] if outcome == OWNED else [])
    assert other_rows == elsewhere


def test_a_draft_leaves_out_a_file_of_another_owner() -> None:
    drafts, elsewhere = recorded(None, {FILE: ELSEWHERE, OTHER_FILE: row_of("own", OTHER_FILE)}, None)
    assert drafts == [[OTHER_FILE]]
    assert elsewhere == [ELSEWHERE]


def test_a_draft_is_not_enqueued_while_one_of_its_rows_is_unconfirmed() -> None:
    drafts, elsewhere = recorded(None, {FILE: NO_ANSWER, OTHER_FILE: row_of("own", OTHER_FILE)}, None)
    assert (drafts, elsewhere) == ([], [])


@pytest.mark.parametrize(
    ("written", "read", "outcome", "elsewhere"),
    [
        (NO_OWNER, None, IGNORED, []),
        (ELSEWHERE, None, UNSETTLED, [ELSEWHERE]),
        (NO_ANSWER, NO_OWNER, IGNORED, []),
        (NO_ANSWER, ELSEWHERE, UNSETTLED, [ELSEWHERE]),
        (NO_ANSWER, None, UNSETTLED, []),
        (NO_ANSWER, NO_ANSWER, UNSETTLED, []),
    ],
)
def test_an_arrival_is_ignored_when_its_row_is_known_to_have_no_owner(
    written: Answer, read: Answer, outcome: ArrivalOutcome, elsewhere: list[ArrivalRow]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        _, unowned, given = record_ignored(ledger_of({FILE: written}, read), pool, {FILE: "no rule"}, STAMP)
    assert ([row.file for row in unowned], given) == ([FILE] if outcome == IGNORED else [], elsewhere)


def test_the_row_of_an_arrival_has_the_reason_and_the_times_of_its_invocation() -> None:
    rows: list[ArrivalRow] = []

    def put(row: ArrivalRow) -> ArrivalRow:
        rows.append(row)
        return row

    ledger: Any = SimpleNamespace(arrivals=SimpleNamespace(put=put))
    arrival = RoutedArrival(FILE, PARTITION, Lane.STREAM, "urgent")
    stamp = replace(STAMP, expires_at=7)
    with ThreadPoolExecutor(1) as pool:
        record_drafts(ledger, pool, [Draft("own", Lane.STREAM, (arrival,), True)], stamp)
        record_ignored(ledger, pool, {OTHER_FILE: "no rule"}, stamp)
    assert rows == [
        ArrivalRow(FILE, "own", PARTITION, Lane.STREAM, "urgent", STAMP.recorded_at, 7),
        ArrivalRow(OTHER_FILE, None, None, None, "no rule", STAMP.recorded_at, 7),
    ]
