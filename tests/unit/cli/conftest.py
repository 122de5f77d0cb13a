"""What the tests of commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.lake.world import new_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.lake.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """Emulated buckets and an emulated ledger."""
    with new_world() as world:
        yield world
