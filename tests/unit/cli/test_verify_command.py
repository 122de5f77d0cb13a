"""How ``verify`` ends when it is asked for what is not there; what it proves is in tests/integration/test_verify.py."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode, exit_code_of
from cli.inspect.verify import verify
from lake.errors import HybridRouterError
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import World

HOURS = {"dataset": "nowhere", "from": "2026-11-20", "to": "2026-11-20"}


@pytest.fixture
def stack(world: World) -> DeployedStack:
    """A stack with default settings and one dataset."""
    world.ledger.datasets.register("orders")
    world.raw_s3.put_object(Bucket="control", Key="settings.json", Body=b'{"stage": "dev"}')
    job = {"Job": {"DefaultArguments": {"--settings": "s3://control/settings.json"}}}
    glue: Any = SimpleNamespace(get_job=lambda **_: job)
    return replace(stack_of(world, FakeServices()), glue=glue)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({}, ExitCode.NOT_SO, "dataset = 'nowhere' is unknown"),
        ({"dataset": None, "from": "yesterday"}, ExitCode.WRONG_USE, "from = 'yesterday' is not a valid time"),
        (
            {"dataset": "orders", "from": "2126-11-20", "to": "2126-11-20"},
            ExitCode.WRONG_USE,
            "the hour 2126-11-20T00 has not begun",
        ),
    ],
)
def test_an_unknown_dataset_is_told_from_a_wrong_option(
    stack: DeployedStack, changes: dict[str, Any], code: ExitCode, message: str
) -> None:
    with pytest.raises(HybridRouterError, match=f"^{message}") as caught:
        verify(stack, {**HOURS, **changes}, 1, as_json=False)
    assert exit_code_of(caught.value) == code
