"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.lake.world import World, new_world


@pytest.fixture
def world() -> Iterator[World]:
    """Emulated buckets and an emulated ledger."""
    with new_world() as world:
        yield world
