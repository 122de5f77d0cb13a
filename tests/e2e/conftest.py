"""One local cloud with the product's stack for all end-to-end tests."""

from collections.abc import Iterator

import pytest

from local.cloud import LocalCloud
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """The stack of ``e2e_settings``, deployed unchanged on its own local cloud."""
    from tests.e2e.scenario import Scenario

    folder = tmp_path_factory.mktemp("cloud")
    with LocalCloud.start(folder / "state") as cloud:
        yield Scenario.deploy(cloud, e2e_settings(), folder / "cdk.out")


FIRST, LAST = "test_failed_night_message.py", "test_used_permissions.py"
"""The first tests: alarms on failed executions and functions also count failures of other tests. The last tests: they
check what all tests together have used."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Some tests depend on the results of others."""
    items.sort(key=lambda item: (item.path.name == LAST) - (item.path.name == FIRST))
