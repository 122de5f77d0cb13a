from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conversion_world import Deployment

if TYPE_CHECKING:
    from local.cloud import LocalCloud


@pytest.fixture
def deployment(cloud: LocalCloud) -> Deployment:
    """Buckets and a ledger of its own for one test; the input bucket has versions."""
    return Deployment.create(cloud)


@pytest.fixture
def unversioned(cloud: LocalCloud) -> Deployment:
    """The same with an input bucket that keeps no versions."""
    return Deployment.create(cloud, versions=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's Python side leaves sockets to the garbage collector; that is not ours to fix."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings(
                    r"ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
                )
            )
