"""The function ``tables`` shares its time among the tables."""

from collections import Counter
from datetime import timedelta

import pytest

from router.tables import handler
from router.tables.handler import TIME_PER_CALL, commit_tables
from tests.unit.router.conftest import Deployment
from tests.unit.router.tables.tabling import TABLES

NAMES = ("clicks", "orders", "visits")


@pytest.fixture
def begun(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Batches by table, where something waits for each of three tables. Each takes a minute."""
    deployment.configure(datasets=TABLES)
    begun: Counter[str] = Counter()
    for name in NAMES:
        deployment.ledger.tables.list_expiry(name, deployment.now)

    def commit_round(_services: object, dataset: str) -> int:
        begun[dataset] += 1
        deployment.wait(timedelta(minutes=1))
        return begun[dataset]

    monkeypatch.setattr(handler, "commit_round", commit_round)
    return begun


def test_no_table_has_a_second_batch_before_every_other_has_its_first(
    deployment: Deployment, begun: Counter[str]
) -> None:
    commit_tables(deployment.services, lambda _: None)
    assert sorted(begun.values()) == [1, 1, 2]


def test_a_table_that_takes_all_the_time_starves_no_other(
    deployment: Deployment, begun: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit_round(_services: object, dataset: str) -> None:
        begun[dataset] += 1
        if dataset == NAMES[0]:
            deployment.wait(TIME_PER_CALL)
            raise RuntimeError("the function has run out of memory")

    monkeypatch.setattr(handler, "commit_round", commit_round)
    for _ in range(60):
        with pytest.raises(RuntimeError):
            commit_tables(deployment.services, lambda _: None)
    assert all(begun[name] for name in NAMES)
