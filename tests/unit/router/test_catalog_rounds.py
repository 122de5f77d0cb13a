"""catalog: many datasets in several invocations, and one bad table among them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lake.ledger import Ledger
from router.catalog.handler import catalog
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.unit.router.glue import FakeGlue

if TYPE_CHECKING:
    from router.services import Services
    from tests.unit.router.conftest import Deployment

DATASETS = 10_000
LAMBDA_TIMEOUT = timedelta(minutes=5)
GLUE_REQUEST = timedelta(milliseconds=100)
MAX_STATE_BYTES = 256 << 10


class SlowGlue(FakeGlue):
    """A Glue that takes some of the deployment's time for each request, and counts them."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__()
        self._deployment = deployment
        self.bad: set[str] = set()
        self.reads: Counter[str] = Counter()

    def get_table(self, DatabaseName: str, Name: str) -> dict[str, Any]:  # noqa: N803
        self._deployment.wait(GLUE_REQUEST)
        self.reads[Name] += 1
        if Name in self.bad:
            raise self._error("AccessDeniedException", "GetTable")
        return super().get_table(DatabaseName, Name)

    def create_table(self, DatabaseName: str, TableInput: dict[str, Any]) -> None:  # noqa: N803
        self._deployment.wait(GLUE_REQUEST)
        super().create_table(DatabaseName, TableInput)


@pytest.fixture
def many(deployment: Deployment) -> Services:
    """A deployment with 10,000 datasets, in memory."""
    dynamodb: Any = FakeDynamoDB()
    ledger = Ledger.over(dynamodb, "ledger")
    for number in range(DATASETS):
        ledger.datasets.register(f"folder_{number:05d}")
    glue: Any = SlowGlue(deployment)
    return replace(deployment.services, ledger=ledger, glue=glue)


def test_ten_thousand_datasets_take_several_invocations_and_each_ends_in_time(
    deployment: Deployment, many: Services
) -> None:
    # Given a Glue that answers in 0.1 s
    glue: Any = many.glue
    seen, invocations = 0, 0
    # When catalog is invoked until every dataset has a table
    while len(glue.tables) < DATASETS:
        begun = deployment.now
        answer = catalog(many)
        # Then each invocation is shorter than its timeout, and its answer fits a state
        assert deployment.now - begun < LAMBDA_TIMEOUT
        assert len(str(answer)) < MAX_STATE_BYTES
        seen, invocations = seen + answer["tables"], invocations + 1
    # Then no dataset was looked at twice, and the next invocation begins from the first one
    assert seen == DATASETS
    assert set(glue.reads.values()) == {1}
    assert 5 < invocations < 12
    assert catalog(many)["created"] == []
    assert glue.reads["folder_00000"] == 2


def test_one_bad_table_does_not_stop_the_others_and_is_told(deployment: Deployment) -> None:
    # Given three datasets, and Glue refuses the first table
    glue = SlowGlue(deployment)
    glue.bad = {"a"}
    services = replace(deployment.services, glue=glue)  # type: ignore[arg-type]
    for name in "abc":
        deployment.ledger.datasets.register(name)
    # When, Then the error leaves the function, which raises its alarm, after the others were created
    with pytest.raises(Exception, match="AccessDenied"):
        catalog(services)
    assert sorted(glue.tables) == ["b", "c"]
    # When the table is repaired, then the next round creates it
    glue.bad = set()
    assert catalog(services)["created"] == ["a"]
