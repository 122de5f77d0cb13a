import pytest

from tests.unit.router.conftest import Deployment
from tests.unit.router.tables.tabling import TABLES


@pytest.fixture(autouse=True)
def _tables(deployment: Deployment) -> None:
    """Each dataset has an Iceberg table, and one dataset has columns."""
    deployment.configure(datasets=TABLES)
    deployment.ledger.datasets.reserve_columns("orders", ["a", "_pos"], 100)
