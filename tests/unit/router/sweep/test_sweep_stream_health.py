"""The sweep measures the stream lane: the age of its oldest open manifest, and silence inside its window."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lake.manifest import Lane
from lake.time import iso_utc
from router.sweep.handler import sweep
from router.telemetry import Metric, metrics

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def measured(deployment: Deployment, metric: Metric) -> float:
    metrics.clear_metrics()
    sweep(deployment.services)
    (value,) = metrics.metric_set[metric]["Value"]
    return float(value)


def test_the_age_is_that_of_the_oldest_open_manifest_of_the_stream_lane(deployment: Deployment) -> None:
    assert measured(deployment, Metric.STREAM_OLDEST_MINUTES) == 0
    # Given a manifest that a run converts, younger ones that wait, and an older one of the batch lane
    deployment.queued("batch.json", lane=Lane.BATCH)
    deployment.wait(timedelta(minutes=20))
    claim = deployment.claimed(deployment.queued("a.json", lane=Lane.STREAM))
    deployment.wait(timedelta(minutes=7))
    deployment.queued("b.json", lane=Lane.STREAM)
    deployment.wait(timedelta(minutes=2, seconds=30))
    assert measured(deployment, Metric.STREAM_OLDEST_MINUTES) == 9.5
    # When it has ended, Then the next one is the oldest
    deployment.ledger.manifests.fail(claim.row, "because", deployment.now)
    assert measured(deployment, Metric.STREAM_OLDEST_MINUTES) == 2.5


@pytest.mark.parametrize(
    ("window_minutes", "heartbeat_minutes", "silent"),
    [
        (60, None, 1),
        (60, 4, 1),
        (60, 2, 0),
        (-1, None, 0),
        (-1, 300, 0),
        (None, None, 0),
    ],
)
def test_a_stream_without_a_heartbeat_is_silent_inside_its_window(
    deployment: Deployment, window_minutes: int | None, heartbeat_minutes: int | None, silent: int
) -> None:
    # Given a heartbeat that is valid for 3 minutes, which are 6 intervals of 30 seconds
    deployment.configure(stream={"trigger_seconds": 30})
    stream = deployment.ledger.stream
    if window_minutes is not None:
        stream.open_window(iso_utc(deployment.now + timedelta(minutes=window_minutes)))
    if heartbeat_minutes is not None:
        stream.record_heartbeat("jr_1", deployment.now - timedelta(minutes=heartbeat_minutes))
    # Then
    assert measured(deployment, Metric.STREAM_SILENT) == silent
