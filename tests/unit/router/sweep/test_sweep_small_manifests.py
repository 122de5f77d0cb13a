"""Small manifests of the batch lane become large ones as soon as their hour is over, so that no night has to do it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.manifest_document import write_manifest
from lake.partition import Partition
from router.plan.handler import plan
from router.sweep import small_manifests
from router.sweep.handler import sweep
from router.sweep.repair import Repair
from router.sweep.small_manifests import HOUR_ENDS_AFTER, merge_small
from tests.unit.router.planning import files
from tests.unit.router.sweep.sweeping import changes

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


@pytest.fixture
def hours(deployment: Deployment) -> tuple[Partition, Partition]:
    """The hour before, and the one that is not over; four minutes of it have passed."""
    now = deployment.now.replace(minute=4)
    deployment.wait(now - deployment.now)
    return Partition.of("orders", now - timedelta(hours=1)), Partition.of("orders", now)


def repair(deployment: Deployment) -> Repair:
    return Repair(deployment.services, datetime.max.replace(tzinfo=UTC))


def waiting(deployment: Deployment) -> list[ManifestRow]:
    return list(deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED))


def test_those_of_an_hour_that_is_over_become_one(deployment: Deployment, hours: tuple[Partition, Partition]) -> None:
    # Given small manifests of two hours; the first one is over, but events of it may be on their way
    before, now = hours
    sources = [deployment.queued(name, partition=before) for name in ("a", "b", "c")]
    later = [deployment.queued(name, partition=now) for name in ("d", "e")]
    assert changes(sweep(deployment.services)) == {}
    # When it has been over for long enough
    deployment.wait(HOUR_ENDS_AFTER - timedelta(minutes=4))
    assert changes(sweep(deployment.services)) == {"merged": 1}
    # Then its files are in one manifest, which is as old as the oldest source
    (merged,) = [row for row in waiting(deployment) if row.partition == before]
    assert files(deployment, [merged.id]) == {f"orders/{name}": 1 for name in ("a", "b", "c")}
    assert merged.created_at == sources[0].created_at
    assert {deployment.row(row.id).state for row in sources} == {State.SUPERSEDED}
    # And nothing else has changed, nor does it later
    assert {row.id for row in waiting(deployment)} == {merged.id, *(row.id for row in later)}
    assert changes(sweep(deployment.services)) == {}


@pytest.mark.parametrize("manifest_files", [7, 16])
def test_at_least_four_become_one(
    deployment: Deployment, hours: tuple[Partition, Partition], manifest_files: int
) -> None:
    # Given manifests of two files, of which three or eight fit into one
    deployment.configure(batch={"manifest_files": manifest_files})
    for name in range(8):
        deployment.queued(f"{name}a", f"{name}b", partition=hours[0])
    deployment.wait(HOUR_ENDS_AFTER)
    # When, Then: merging three would cost what it saves
    assert changes(sweep(deployment.services)) == ({} if manifest_files == 7 else {"merged": 1})


def test_a_group_that_fails_leaves_the_others_alone(
    deployment: Deployment, hours: tuple[Partition, Partition], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two datasets with two manifests each, and a bucket that refuses the document of one
    clicks = Partition("clicks", hours[0].date, hours[0].hour)
    for partition in (hours[0], clicks):
        for name in "ab":
            deployment.queued(name, partition=partition)
    deployment.wait(HOUR_ENDS_AFTER)

    def write(*arguments: Any) -> None:
        if arguments[-1].partition == clicks:
            raise ConnectionError("no answer")
        write_manifest(*arguments)

    monkeypatch.setattr("router.merge.merge.write_manifest", write)
    # When
    work = repair(deployment)
    merge_small(work)
    # Then
    assert work.counts == {"merged": 1}
    assert [str(item.error) for item in work.failed] == ["no answer"]
    assert len(waiting(deployment)) == 3
    # And the next sweep merges them
    monkeypatch.undo()
    assert changes(sweep(deployment.services)) == {"merged": 1}


def test_a_sweep_looks_at_a_bounded_number_of_manifests(
    deployment: Deployment, hours: tuple[Partition, Partition], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given more manifests than a sweep looks at
    monkeypatch.setattr(small_manifests, "MAX_CANDIDATES", 3)
    for name in "abcdef":
        deployment.queued(name, partition=hours[0])
    deployment.wait(HOUR_ENDS_AFTER)
    # When, Then: each sweep goes on
    found = []
    for _ in range(4):
        sweep(deployment.services)
        found.append(len(waiting(deployment)))
    assert found == [4, 2, 1, 1]


def test_no_group_is_begun_after_the_time_of_the_repair(
    deployment: Deployment, hours: tuple[Partition, Partition]
) -> None:
    for name in "ab":
        deployment.queued(name, partition=hours[0])
    deployment.wait(HOUR_ENDS_AFTER)
    work = Repair(deployment.services, deployment.now - timedelta(seconds=1))
    merge_small(work)
    assert work.counts.total() == 0
    assert len(waiting(deployment)) == 2


def test_a_dry_run_names_the_groups_and_merges_none(deployment: Deployment, hours: tuple[Partition, Partition]) -> None:
    for name in "ab":
        deployment.queued(name, partition=hours[0])
    deployment.wait(HOUR_ENDS_AFTER)
    answer = sweep(deployment.services, dry_run=True)
    assert (answer["merged"], answer["items"]) == (1, [f"merged: 2 manifests of {hours[0]}"])
    assert len(waiting(deployment)) == 2


def test_what_a_plan_has_packed_into_runs_is_not_merged(
    deployment: Deployment, hours: tuple[Partition, Partition]
) -> None:
    # Given manifests that are too large for a plan to merge, and a plan that gives each to a run of its own
    deployment.configure(batch={"manifest_files": 16, "run_bytes": 1, "workers": 2})
    clicks = Partition("clicks", hours[0].date, hours[0].hour)
    for partition in (hours[0], clicks):
        for name in "abcd":
            deployment.queued(f"{name}1", f"{name}2", partition=partition)
    deployment.wait(HOUR_ENDS_AFTER)
    for name in ("orders", "clicks"):
        deployment.ledger.datasets.register(name)
    answer = plan({"execution": "backfill", "dataset": "orders"}, deployment.services)
    assert (answer["runs"], answer["manifests"]) == (4, 4)
    # When, Then: what the plan has not selected is merged, and so is what comes later
    assert changes(sweep(deployment.services)) == {"merged": 1}
    assert len([row for row in waiting(deployment) if row.partition == hours[0]]) == 4
    deployment.wait(timedelta(seconds=1))
    for name in "ef":
        deployment.queued(name, partition=hours[0])
    assert changes(sweep(deployment.services)) == {"merged": 1}
    assert len([row for row in waiting(deployment) if row.partition == hours[0]]) == 5
