from collections.abc import Iterator

import pytest

from tests.unit.lake.world import World, new_world


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as world:
        yield world
