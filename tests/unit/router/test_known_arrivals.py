"""Which arrivals a listing may skip: only those that have a living owner, by two reads that were answered."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from lake.ledger import ArrivalRow
from lake.manifest import Lane
from lake.time import iso_utc
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import without_known
from tests.unit.lake.world import MORNING, PARTITION, file_of
from tests.unit.router.conftest import Deployment

NEW, IGNORED, QUEUED, DONE, NO_OWNER, DEAD = (file_of(f"orders/{name}.json") for name in "abcdef")
RETURNED = file_of("orders/g.json", version=None)
KNOWN = {QUEUED, DONE, RETURNED}


def routed(file: Any) -> RoutedArrival:
    return RoutedArrival(file, PARTITION, Lane.BATCH, "test")


def record(deployment: Deployment, file: Any, manifest: str | None) -> None:
    deployment.ledger.arrivals.put(ArrivalRow(file, manifest, PARTITION, Lane.BATCH, "test", iso_utc(MORNING)))


@pytest.fixture
def arrivals(deployment: Deployment) -> list[RoutedArrival]:
    """One of each kind."""
    manifests = deployment.ledger.manifests
    queued, done = deployment.queued("c.json"), deployment.queued("d.json")
    record(deployment, IGNORED, None)
    record(deployment, QUEUED, queued.id)
    record(deployment, RETURNED, queued.id)
    record(deployment, DONE, done.id)
    manifests.fail(done, "ended", deployment.now)
    record(deployment, NO_OWNER, "20261120T093000nobody")
    record(deployment, DEAD, "20261120T093000abandoned")
    manifests.abandon("20261120T093000abandoned", deployment.now)
    later = replace(RETURNED, arrived_at=iso_utc(MORNING + timedelta(hours=1)))
    return [*map(routed, (NEW, IGNORED, QUEUED, DONE, NO_OWNER, DEAD)), routed(later)]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_only_arrivals_with_a_living_owner_are_known(
    deployment: Deployment, arrivals: list[RoutedArrival], pool: ThreadPoolExecutor
) -> None:
    remaining = without_known(deployment.ledger, pool, arrivals)
    assert {arrival.file.key for arrival in arrivals} - {arrival.file.key for arrival in remaining} == {
        file.key for file in KNOWN
    }


@pytest.mark.parametrize("rows", ["arrivals", "manifests"])
def test_a_read_without_an_answer_makes_nothing_known(
    deployment: Deployment,
    arrivals: list[RoutedArrival],
    pool: ThreadPoolExecutor,
    rows: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Given reads of the arrivals, or of their owners, that get no answer
    def no_answer(_: object) -> None:
        raise ReadTimeoutError(endpoint_url="loopback")

    monkeypatch.setattr(type(getattr(deployment.ledger, rows)), "get_many", lambda _, keys: no_answer(keys))

    # When / Then every arrival stays, for the writes that decide
    assert without_known(deployment.ledger, pool, arrivals) == arrivals
    # Then the log says why: a missing permission would make every listing slow, and nothing else would tell
    (warning,) = caplog.records
    assert (warning.levelname, "loopback" in vars(warning)["error"]) == ("WARNING", True)
