from pathlib import Path

import pytest

from local.cloud import LocalCloud
from tests.integration.conversion_world import ConversionWorld


@pytest.fixture
def world(cloud: LocalCloud) -> ConversionWorld:
    """Buckets and a ledger for one test; the input bucket has versions."""
    return ConversionWorld.create(cloud)


@pytest.fixture
def unversioned_world(cloud: LocalCloud) -> ConversionWorld:
    """A world with an input bucket that keeps no versions."""
    return ConversionWorld.create(cloud, versions=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves sockets to the garbage collector, which warns about them; only PySpark could close them."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings(
                    r"ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
                )
            )
