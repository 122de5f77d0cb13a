"""The reason of an open manifest changes by itself, with the same fence as every transition."""

import pytest

from tests.unit.lake.transitions import STATES, row_in_state
from tests.unit.lake.world import World


@pytest.mark.parametrize("state", STATES)
def test_only_an_open_manifest_gets_a_reason(world: World, state: str) -> None:
    row = row_in_state(world, state)
    assert world.ledger.manifests.record_reason(row, "denied") == row.open
    assert world.row(row.id).reason == ("denied" if row.open else row.reason)


def test_the_same_reason_is_not_written_again(world: World) -> None:
    row = row_in_state(world, "QUEUED")
    world.ledger.manifests.record_reason(row, "denied")
    world.faults.reset()
    assert world.ledger.manifests.record_reason(world.row(row.id), "denied")
    assert world.faults.writes == []


def test_a_row_that_has_changed_keeps_its_reason(world: World) -> None:
    row = row_in_state(world, "QUEUED")
    world.claimed(row)
    assert not world.ledger.manifests.record_reason(row, "denied")
    assert world.row(row.id).reason is None
