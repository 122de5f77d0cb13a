"""An execution that loses lines or files says which, of which dataset, and above which share."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lake.layout import verdict_key
from lake.ledger import ManifestRow, PublishedTotals, State
from lake.ledger.manifest_row import NO_OBJECTS
from lake.manifest import Lane, Partition
from router.settle.published import UnreadableFile
from router.settle.tally import MAX_NAMED_DATASETS, DatasetTallies, Tally
from router.settle.verdict import format_quarantine, judge
from tests.unit.lake.world import MORNING, PARTITION
from tests.unit.router.settling import done, planned, settled

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment

ROW = ManifestRow("m", State.DONE, Lane.BATCH, PARTITION, "", 400, 4)


def totals(rows: int, rejects: int, failed_files: int = 0) -> PublishedTotals:
    return PublishedTotals(rows, {"not JSON": rejects}, failed_files, NO_OBJECTS, NO_OBJECTS, 1000)


def row_of(dataset: str) -> ManifestRow:
    return replace(ROW, partition=Partition(dataset, "2026-11-20", 9))


@pytest.mark.parametrize(
    ("published", "share"),
    [
        (totals(0, 0), 0),
        (totals(95, 5), 0.05),
        (totals(0, 793), 1),
        (totals(100, 0, failed_files=1), 0.25),
        (totals(50, 50, failed_files=1), 0.5),
    ],
)
def test_the_share_is_that_of_the_lines_or_of_the_files(published: PublishedTotals, share: float) -> None:
    tallies = DatasetTallies()
    tallies.add_totals(ROW, published)
    assert [tally.quarantined_share for tally in tallies.above(-1)] == [share]


def test_the_message_names_the_datasets_above_the_share_and_counts_the_others() -> None:
    # Given: five datasets that lose everything, and one that loses one line in 20
    tally = Tally(now=MORNING)
    for name in ("a", "b", "c", "d", "e", "f"):
        tally.add(row_of(name))
        tally.add_totals(row_of(name), totals(19, 1) if name == "f" else totals(0, 793))
    # When
    verdict = judge(tally, 0.05)
    # Then
    assert verdict.outcome == "SUCCEEDED_WITH_QUARANTINE"
    assert verdict.datasets_above_share == 5
    assert verdict.message.endswith(
        "; more than alarms.max_quarantined_share is in the quarantine: 100 % of a, 100 % of b, 100 % of c and 2 other "
        "datasets"
    )
    assert judge(tally, 1).datasets_above_share == 0


def test_the_document_lists_the_datasets_with_most_lines_in_the_quarantine_first() -> None:
    tallies = DatasetTallies()
    for number in range(MAX_NAMED_DATASETS + 1):
        tallies.add(row_of(f"d{number}"))
        tallies.add_totals(row_of(f"d{number}"), totals(1, number))
    listed = tallies.to_json()
    assert (len(listed), listed[0]["dataset"], listed[0]["rejects"]) == (200, "d200", {"not JSON": 200})
    assert {name: listed[0][name] for name in ("done", "failed", "open", "files", "bytes", "rows")} == {
        "done": 1,
        "failed": 0,
        "open": 0,
        "files": 4,
        "bytes": 400,
        "rows": 1,
    }


def test_the_verdict_document_names_datasets_and_unreadable_files(deployment: Deployment) -> None:
    # Given: a night with a manifest that lost two lines and a file
    (row,) = planned(deployment, "a")
    done(deployment, row, rows=3, rejects=2, unreadable="s3://input/orders/b")
    # When
    answer = settled(deployment)
    # Then
    body = deployment.raw_s3.get_object(Bucket="control", Key=verdict_key("overnight"))["Body"].read()
    document = json.loads(body)
    (dataset,) = document["datasets"]
    assert (dataset["dataset"], dataset["rows"], dataset["rejects"], dataset["failed_files"]) == (
        "orders",
        3,
        {"not JSON": 2},
        1,
    )
    assert document["unreadableFiles"] == [
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
