"""A transition that the ledger refuses: whether it was applied before, or the row is another one by now."""

from collections.abc import Callable

import pytest

from lake.errors import LeaseLostError
from lake.ledger import Claim, CommitReference, ManifestRow, Published
from tests.unit.lake.transitions import DOCUMENT, TOTALS, force, row_in_state, supersede
from tests.unit.lake.world import LEASE, World

OTHER_DOCUMENT = CommitReference("commits/other.json", "1" * 64)


def test_a_repeated_commit_recognises_what_was_published_and_forced_meanwhile(world: World) -> None:
    # Given a commit without an answer, which another process has published, and a request for the next generation
    held = world.claimed(world.queued("a.json"))
    manifests = world.ledger.manifests
    manifests.commit(held, DOCUMENT, world.now)
    manifests.finish(world.row(held.row.id), TOTALS, world.now)
    force(world, world.row(held.row.id))
    # When, Then
    manifests.commit(held, DOCUMENT, world.now)
    with pytest.raises(LeaseLostError):
        manifests.commit(held, OTHER_DOCUMENT, world.now)


def test_of_two_threads_of_a_run_one_claims(world: World) -> None:
    # Given two threads that have read the same row
    row = world.queued("a.json")
    # When both claim it for their run, then exactly one holds it
    claims = [world.ledger.manifests.claim(row, "jr_1", world.now, LEASE) for _ in range(2)]
    assert [claim is not None for claim in claims] == [True, False]


def released(world: World, row: ManifestRow) -> None:
    world.ledger.manifests.release(row, "another process", world.now)


def released_later(world: World, row: ManifestRow) -> None:
    released(world, row)
    released(world, world.claimed(world.row(row.id), "jr_2").row)


def committed(world: World, row: ManifestRow) -> None:
    world.ledger.manifests.commit(Claim(row, "jr_1"), DOCUMENT, world.now)


@pytest.mark.parametrize(("meanwhile", "over"), [(released, True), (released_later, False), (committed, False)])
def test_a_refused_release_tells_whether_the_attempt_was_given_up(
    world: World, meanwhile: Callable[[World, ManifestRow], None], over: bool
) -> None:
    row = row_in_state(world, "RUNNING")
    meanwhile(world, row)
    changed = world.row(row.id)
    assert world.ledger.manifests.release(row, "because", world.now) == over
    assert world.row(row.id) == changed


def test_a_finish_is_not_that_of_a_later_generation(world: World) -> None:
    # Given a process that stalls before DONE, and the next generation, which is DONE with another document
    row = row_in_state(world, "PUBLISHING")
    manifests = world.ledger.manifests
    manifests.finish(row, TOTALS, world.now)
    force(world, world.row(row.id))
    manifests.commit(world.claimed(world.row(row.id)), OTHER_DOCUMENT, world.now)
    manifests.finish(world.row(row.id), TOTALS, world.now)
    # When, Then
    assert not manifests.finish(row, TOTALS, world.now)
    assert world.row(row.id).published == Published(2, OTHER_DOCUMENT, TOTALS)


def test_a_manifest_that_others_have_superseded_is_not_superseded_by_these(world: World) -> None:
    row, others = world.queued("a.json"), [world.manifest("a.json")]
    assert world.ledger.manifests.supersede(row, others, "others", world.now)
    assert not supersede(world, row)
    assert world.row(row.id).superseded_by == (others[0].id,)
