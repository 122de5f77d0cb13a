"""Every transition of a manifest: from where it is legal, from where it is not, and with its answer lost."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.ledger import State
from tests.unit.lake.transitions import (
    AFTERWARDS,
    LEGAL,
    STATES,
    Transition,
    claim,
    commit,
    fail,
    finish,
    force,
    release,
    row_in_state,
    supersede,
)
from tests.unit.lake.world import LEASE, World


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("transition", LEGAL)
def test_a_transition_is_applied_only_where_it_is_legal(world: World, transition: Transition, state: str) -> None:
    row = row_in_state(world, state)
    legal = state in LEGAL[transition]
    assert transition(world, row) == legal
    after = world.row(row.id)
    assert after.state == (AFTERWARDS[transition] if legal else row.state)
    assert legal or after == row


@pytest.mark.parametrize("transition", LEGAL)
def test_a_transition_is_fenced_against_concurrent_changes(world: World, transition: Transition) -> None:
    # Given: a row that another run has claimed, also after its lease expired
    row = row_in_state(world, LEGAL[transition][0])
    if transition is force:
        world.ledger.manifests.force(row, world.now)
    elif transition is finish:
        world.ledger.manifests.fail(row, "uploads vanished", world.now)
    elif row.state == State.QUEUED:
        world.claimed(row, "jr_7")
    else:
        world.wait(LEASE)
        world.claimed(world.row(row.id), "jr_7")
    meanwhile = world.row(row.id)
    # When, Then
    assert not transition(world, row)
    assert world.row(row.id) == meanwhile


@pytest.mark.parametrize("transition", [claim, release, commit, finish, fail, supersede])
def test_a_repeated_transition_recognises_that_it_was_applied(world: World, transition: Transition) -> None:
    """As the client's own retry does it: the first attempt was applied, the second one is refused."""
    row = row_in_state(world, LEGAL[transition][0])
    repeat_writes(world)
    assert transition(world, row)
    assert world.row(row.id).state == AFTERWARDS[transition]


def repeat_writes(world: World) -> None:
    """Send every write twice, and return the second answer only."""
    call = world.faults.call

    def twice(name: str, method: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        if name in ("put_item", "update_item", "transact_write_items"):
            call(name, method, kwargs)
        return call(name, method, kwargs)

    world.faults.call = twice  # type: ignore[method-assign]
