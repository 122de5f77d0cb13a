"""Each permission is taken away once: what needs it fails, and a sentence names role and action."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import other_clouds
from tests.e2e.removals.stage import Stage
from tests.e2e.removals.table import REMOVALS

if TYPE_CHECKING:
    from tests.e2e.removals.removal import Removal
    from tests.e2e.scenario import Scenario

pytestmark = pytest.mark.long
"""``make permissions`` plays them."""
SINGLE = [
    pytest.param(removal, action, id=f"{removal.role}-{action.replace(':', '-')}")
    for removal in REMOVALS
    for action in removal.actions.split()
]


@pytest.mark.parametrize(("removal", "action"), SINGLE)
def test_a_removal_is_told_by_role_and_action(deprived: Scenario, removal: Removal, action: str) -> None:
    # Given a stack of which one role lacks one action
    stage = Stage(deprived, removal.role, action)
    # When something needs it
    text = removal.play(stage)
    # Then a person reads what is missing
    assert stage.told(text), text[-3000:]
    other_clouds.MISSED.add((removal.role, action))
