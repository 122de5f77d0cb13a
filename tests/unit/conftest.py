"""Fixtures that the tests of several packages share."""

from collections.abc import Iterator

import pytest

from tests.unit.lake.world import World
from tests.unit.router.conftest import Deployment


@pytest.fixture
def world() -> Iterator[World]:
    """Emulated buckets and an emulated ledger."""
    from tests.unit.lake.world import new_world

    with new_world() as world:
        yield world


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """A world with a control plane."""
    from tests.unit.router.conftest import new_deployment

    with new_deployment() as deployment:
        yield deployment
