"""A DONE manifest relinquishes files by one conditional update, which a new generation makes fail."""

import pytest

from lake.ledger import State
from tests.unit.lake.test_lake_transitions import repeat_writes
from tests.unit.lake.transitions import STATES, row_in_state
from tests.unit.lake.world import World

LIST, LONGER_LIST = "exclusions/a.json", "exclusions/b.json"


@pytest.mark.parametrize("state", STATES)
def test_only_a_done_manifest_relinquishes_and_it_stays_done(world: World, state: str) -> None:
    row = row_in_state(world, state)
    assert world.ledger.manifests.relinquish(row, LIST) == (state == "DONE")
    after = world.row(row.id)
    assert after.state == row.state
    assert after.relinquished == (LIST if state == "DONE" else None)


def test_a_longer_list_replaces_the_one_that_the_caller_has_read(world: World) -> None:
    row = row_in_state(world, "DONE")
    manifests = world.ledger.manifests
    assert manifests.relinquish(row, LIST)
    # Neither is the list of another process lost, nor one written twice.
    assert not manifests.relinquish(row, LONGER_LIST)
    assert manifests.relinquish(row, LIST)
    assert manifests.relinquish(world.row(row.id), LONGER_LIST)
    assert world.row(row.id).relinquished == LONGER_LIST


def test_a_generation_that_has_begun_keeps_its_files(world: World) -> None:
    row = row_in_state(world, "DONE")
    assert world.ledger.manifests.force(row, world.now)
    assert not world.ledger.manifests.relinquish(row, LIST)
    after = world.row(row.id)
    assert (after.state, after.relinquished) == (State.QUEUED, None)


def test_a_write_that_the_client_repeated_counts(world: World) -> None:
    row = row_in_state(world, "DONE")
    repeat_writes(world)
    assert world.ledger.manifests.relinquish(row, LIST)


def test_a_later_generation_keeps_the_list(world: World) -> None:
    row = row_in_state(world, "DONE")
    world.ledger.manifests.relinquish(row, LIST)
    assert world.ledger.manifests.force(world.row(row.id), world.now)
    assert world.row(row.id).relinquished == LIST
