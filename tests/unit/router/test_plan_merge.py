"""plan: what is merged, how many groups at a time, at which pace, and for how long."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.manifest_document import write_manifest
from lake.settings import parse_settings
from router.merge.merge import SMALL_SHARE, TIME_TO_MERGE, merge, mergeable_groups
from router.merge.write_pace import MAX_INDEX_WRITES_PER_SECOND, WritePace
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import HOURS

LIMITS = parse_settings({"stage": "t"}).batch
BARRIER_SECONDS = 30
"""Only a failing test waits for it."""


def rows(count: int, size: int, files: int) -> list[ManifestRow]:
    return [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, PARTITION, f"{number:04d}", size, files)
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("size", "files", "merged"),
    [
        (22 * 3_500_000, 22, True),
        (LIMITS.manifest_bytes // SMALL_SHARE, LIMITS.manifest_files // SMALL_SHARE, True),
        (LIMITS.manifest_bytes // SMALL_SHARE + 1, 1, False),
        (4_500_000_000, 1, False),
        (1, LIMITS.manifest_files // SMALL_SHARE + 1, False),
    ],
    ids=["22 small files", "at the limits", "too many bytes", "one file of 4.5 GB", "too many files"],
)
def test_only_what_is_far_below_the_limits_is_merged(size: int, files: int, merged: bool) -> None:
    assert bool(mergeable_groups(rows(4, size, files), LIMITS)) == merged


def test_single_files_are_merged_where_a_manifest_may_have_only_a_few() -> None:
    few = parse_settings({"stage": "t", "batch": {"manifest_files": 2}}).batch
    assert [len(group) for group in mergeable_groups(rows(4, 1, 1), few)] == [2, 2]


def queued_groups(deployment: Deployment) -> list[ManifestRow]:
    """Two groups, of two and of three manifests."""
    return [
        deployment.queued(f"{hour.hour}{name}", partition=hour)
        for hour, names in ((HOURS[0], "ab"), (HOURS[1], "cde"))
        for name in names
    ]


def test_groups_are_merged_side_by_side(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: a write of a document that ends only when that of the other group has begun
    backlog, both_have_begun = queued_groups(deployment), threading.Barrier(2)

    def write(*arguments: Any) -> None:
        both_have_begun.wait(BARRIER_SECONDS)
        write_manifest(*arguments)

    monkeypatch.setattr("router.merge.merge.write_manifest", write)
    # When, Then
    assert len(merge(deployment.services, backlog)) == 2


def test_sources_and_successors_count_for_the_pace(deployment: Deployment) -> None:
    # Given
    taken: list[int] = []

    class Pace(WritePace):
        def take(self, writes: int) -> None:
            taken.append(writes)

    # When
    merge(deployment.services, queued_groups(deployment), Pace())
    # Then
    assert sorted(taken) == [3, 4]


def test_writes_keep_the_pace_on_average() -> None:
    # Given: a clock that only waiting moves
    now = 0.0
    waits: list[float] = []

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds
        waits.append(seconds)

    pace = WritePace(now=lambda: now, wait=wait)
    # When
    for _ in range(100):
        pace.take(91)
    # Then: all but the last group are spread over their time
    assert now == pytest.approx(99 * 91 / MAX_INDEX_WRITES_PER_SECOND)
    assert MAX_INDEX_WRITES_PER_SECOND < 1000
    # When it was idle, Then nothing is owed and nothing is saved up
    now += 3600
    waits.clear()
    pace.take(91)
    assert waits == []
    pace.take(91)
    assert waits == [pytest.approx(91 / MAX_INDEX_WRITES_PER_SECOND)]


def test_when_the_time_is_over_the_rest_is_planned_as_it_is(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: one group at a time, and a supersede after which the time to merge is over
    backlog = queued_groups(deployment)
    monkeypatch.setattr("router.merge.merge.PARALLEL_GROUPS", 1)
    deployment.faults.writes.clear()
    deployment.faults.pause = (2, lambda: deployment.wait(TIME_TO_MERGE + timedelta(seconds=1)))
    # When
    planned = merge(deployment.services, backlog)
    # Then: the group that saves more was merged, and every file is in one manifest
    assert len(planned) == 3
    assert sum(row.files for row in planned) == 5
    assert {row.id for row in planned if row in backlog} == {row.id for row in backlog[:2]}
