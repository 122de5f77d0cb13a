"""The list of what did not get through: FAILED manifests, and DONE ones with unreadable files, until the next try."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.ledger import Failure, State
from lake.manifest import Lane
from tests.unit.lake.transitions import DOCUMENT, TOTALS

if TYPE_CHECKING:
    from lake.ledger import ManifestRow, PublishedTotals
    from tests.unit.lake.world import World


def listed(world: World, failure: Failure, lane: Lane = Lane.BATCH) -> list[str]:
    return [row.id for row in world.ledger.manifests.failures(lane, failure)]


def done(world: World, row: ManifestRow, totals: PublishedTotals = TOTALS) -> ManifestRow:
    world.ledger.manifests.commit(world.claimed(row), DOCUMENT, world.now)
    assert world.ledger.manifests.finish(world.row(row.id), totals, world.now)
    return world.row(row.id)


def test_failed_manifests_are_listed_oldest_first(world: World) -> None:
    first = world.queued("a.json")
    world.wait(timedelta(seconds=1))
    second = world.queued("b.json")
    for row in (second, first):
        assert world.ledger.manifests.fail(row, "because", world.now)
    assert listed(world, Failure.FAILED) == [first.id, second.id]
    assert listed(world, Failure.FAILED, Lane.STREAM) == []
    assert list(world.ledger.manifests.open(Lane.BATCH, State.QUEUED)) == []


def test_only_a_manifest_with_unreadable_files_is_listed_when_it_is_done(world: World) -> None:
    unreadable = done(world, world.queued("a.json"))
    done(world, world.queued("b.json"), replace(TOTALS, failed_files=0))
    assert listed(world, Failure.UNREADABLE) == [unreadable.id]
    assert listed(world, Failure.FAILED) == []


def test_a_manifest_that_is_queued_again_leaves_the_list_and_a_whole_result_keeps_it_out(world: World) -> None:
    # Given: a manifest with an unreadable file
    row = done(world, world.queued("a.json"))
    # When
    assert world.ledger.manifests.force(row, world.now)
    # Then
    assert listed(world, Failure.UNREADABLE) == []
    done(world, world.row(row.id), replace(TOTALS, failed_files=0))
    assert listed(world, Failure.UNREADABLE) == []
    assert list(world.ledger.manifests.open(Lane.BATCH, State.PUBLISHING)) == []
