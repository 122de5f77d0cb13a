"""The control plane and the simulator agree exactly on lanes, manifests, bytes and runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import SQSEvent

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import Settings
from lake.speed import Speeds
from router.plan.handler import plan
from router.plan.night import PlannedNight
from router.route.handler import route
from router.telemetry import metrics
from sizing.arrivals import FileGroup
from sizing.batch_lane import BacklogItem, divide_collections, simulate_night
from sizing.options import night_start
from sizing.routing import Router, divide_events
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import message, s3_record
from tests.unit.router.planning import document

GROUPS = {
    # 09:00, 12:20 and 21:00 in Berlin; the first two are in peak hours.
    1980: [FileGroup("orders/a.ndjson", 700_000, 9), FileGroup("orders/b.ndjson.gz", 90_000, 4)],
    2580: [FileGroup("clicks/c.ndjson", 40_000_000, 6), FileGroup("clicks/notes.txt", 5, 2)],
    4140: [
        FileGroup("orders/urgent/d.ndjson", 2_000, 3),
        FileGroup("orders/e.ndjson", 30_000_000, 14),
        FileGroup("orders/f.ndjson.gz", 11_000_000, 7),
        FileGroup("clicks/g.ndjson", 1_000, 11),
    ],
}
"""By the number of the window of 20 seconds in the day before the night."""
LIMITS: dict[str, dict[str, Any]] = {
    "input": {"event_window_seconds": 20},
    "stream": {"manifest_bytes": 50_000_000},
    "batch": {"manifest_bytes": 10_000_000_000, "run_bytes": 100_000_000, "engines": ["glue"]},
}


@pytest.fixture
def deployment(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setattr(metrics, "namespace", "hybrid-router")
    deployment.configure(**LIMITS)
    yield deployment
    metrics.clear_metrics()


def the_night(of: Settings) -> datetime:
    return night_start(of, datetime(2026, 11, 20, tzinfo=UTC).date())


def routed_by_the_product(deployment: Deployment) -> None:
    """The events of each window, as the pollers of the queue divide them."""
    first = the_night(deployment.services.settings) - timedelta(days=1)
    for window, groups in GROUPS.items():
        at = first + timedelta(seconds=20 * window + 10)
        deployment.now = at + timedelta(seconds=10)
        files = [(group, number) for group in groups for number in range(group.count)]
        for events in divide_events([(item, 1) for item in files], 5):
            records = []
            for group, number in events:
                key = group.key.replace(".", f"{window}_{number}.", 1)
                records.append(message(key, s3_record(key, size=group.bytes, time=at.isoformat())))
            assert route(SQSEvent({"Records": records}), deployment.services)["batchItemFailures"] == []


def routed_by_the_simulator(of: Settings) -> tuple[list[ManifestRow], list[BacklogItem]]:
    """The manifests of the stream lane, and of the batch lane."""
    router = Router(of, Speeds({}, of), the_night(of))
    stream = [found.row for window, groups in GROUPS.items() for found in router.route(window, groups)]
    return stream, divide_collections(router.collected, of.batch)


def lanes(rows: Sequence[ManifestRow]) -> dict[Lane, tuple[int, int, int, int]]:
    """Manifests, files, bytes and bytes of compressed files of each lane."""
    return {
        lane: (len(own), *(sum(getattr(row, name) for row in own) for name in ("files", "bytes", "compressed_bytes")))
        for lane in Lane
        if (own := [row for row in rows if row.lane == lane])
    }


def simulated_night(of: Settings) -> PlannedNight:
    night = simulate_night(routed_by_the_simulator(of)[1], of, Speeds({}, of), the_night(of))
    assert night is not None
    return night[0]


def test_lanes_have_the_same_manifests_files_and_bytes(deployment: Deployment) -> None:
    # When
    routed_by_the_product(deployment)
    # Then
    rows = [*deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED), *deployment.waiting()]
    stream, batch = routed_by_the_simulator(deployment.services.settings)
    assert lanes([*stream, *(item.row for item in batch)]) == lanes(rows)
    assert {row.lane for row in rows} == set(Lane)


def test_the_plan_has_the_same_manifests_and_runs(deployment: Deployment) -> None:
    # Given the same files
    routed_by_the_product(deployment)
    deployment.now = the_night(deployment.services.settings) + timedelta(seconds=30)
    # When
    answer = plan({"execution": "overnight"}, deployment.services)
    # Then
    night = simulated_night(deployment.services.settings)
    index: list[dict[str, Any]] = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    assert len(index) == len(night.runs) > 1
    assert Counter(item["bytes"] for item in index) == Counter(run.bytes for run in night.runs)
    assert Counter(item["manifests"] for item in index) == Counter(len(run.manifests) for run in night.runs)
    assert (answer["engine"], answer["workers"]) == (night.night.engine, night.night.workers)
    assert answer["maxConcurrency"] == night.night.concurrency
    assert answer["forecast"]["dollars"] == pytest.approx(night.forecast.dollars, abs=0.01)
