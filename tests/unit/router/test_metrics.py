"""What alarms and the dashboard read is recorded by the function that they name, with its value."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from lake.errors import TransientError
from lake.publish import abort_under_prefix
from router.plan.handler import plan
from router.route.handler import route
from router.stream.handler import stream_control
from router.sweep.handler import sweep
from router.telemetry import Metric, metrics
from tests.unit.router.conftest import Deployment, act, measure_speed, recorded
from tests.unit.router.events import SENT_AT, batch, message, raw_message, s3_record
from tests.unit.router.settling import done, planned, settled
from tests.unit.router.sweep.sweeping import committed


def test_settle_records_what_an_execution_has_left(deployment: Deployment) -> None:
    # Given a manifest with rejected lines and an unreadable file, one that failed, and one that is converted
    published, failed, running = planned(deployment, "a", "b", "c")
    done(deployment, published, rows=1, rejects=2, unreadable="s3://input/gone")
    deployment.ledger.manifests.fail(deployment.claimed(failed), "because", deployment.now)
    deployment.claimed(running)
    # Then
    manifests = (Metric.FAILED_MANIFESTS, Metric.OPEN_MANIFESTS)
    files = (Metric.FAILED_FILES, Metric.REJECTED_LINES, Metric.DATASETS_ABOVE_QUARANTINED_SHARE)
    assert recorded(lambda: settled(deployment), *manifests, *files) == [1, 1, 1, 2, 0]
    # And the share only when the last manifest has ended, because that one can have most of the lines
    deployment.ledger.manifests.fail(deployment.row(running.id), "because", deployment.now)
    assert recorded(lambda: settled(deployment), *manifests, *files) == [2, 0, 1, 2, 1]


def test_an_action_without_the_state_of_a_shard_records_nothing(deployment: Deployment) -> None:
    # Given a window that was opened after the window of the execution that stops its runs
    act(deployment, "start")
    metrics.clear_metrics()
    stream_control({"action": "stop"}, deployment.services)
    assert not metrics.metric_set
    # And a watch that gets no report about the only shard
    deployment.patch.setattr("router.stream.handler.stream_runs", Mock(side_effect=TransientError("no answer")))
    with pytest.raises(TransientError):
        act(deployment, "watch")
    assert not metrics.metric_set


def test_a_plan_that_does_not_fit_records_by_how_much(deployment: Deployment) -> None:
    # Given a dataset whose bytes take a core eleven days each
    measure_speed(deployment, 1e-6)
    deployment.queued("a")
    (late,) = recorded(lambda: plan({"execution": "overnight"}, deployment.services), Metric.PLAN_LATE_MINUTES)
    assert late > 0
    # But not for a person's question about one engine, or about a part of the backlog
    metrics.clear_metrics()
    plan({"execution": "question", "dryRun": True, "engine": "glue-flex"}, deployment.services)
    assert not metrics.metric_set
    # And not for a night whose start is unknown
    deployment.configure(schedule={"overnight": "rate(7 days)"})
    metrics.clear_metrics()
    plan({"execution": "plan-ahead", "dryRun": True}, deployment.services)
    assert not metrics.metric_set


def test_route_records_what_it_ignores(deployment: Deployment) -> None:
    deployment.configure(max_datasets=3, datasets=[{"name": "{folder}", "prefix": "in/"}])
    keys = ("in/a/1.json", "in/b/1.json", "other/1.json")
    event = batch(message("1", *(s3_record(key) for key in keys)))
    ignored = (Metric.FILES_BEYOND_DATASET_LIMIT, Metric.ARRIVALS, Metric.IGNORED_FILES)
    lanes = (Metric.STREAM_BYTES, Metric.BATCH_BYTES)
    assert recorded(lambda: route(event, deployment.services), *ignored, *lanes) == [1, 3, 2, 100, 0]
    assert Metric.UNROUTED_SECONDS not in metrics.metric_set


def test_route_records_the_age_of_the_oldest_event_that_is_redelivered(deployment: Deployment) -> None:
    event = batch(raw_message("1", "not an event"), message("2", s3_record("orders/a.json")), raw_message("3", "later"))
    event["Records"][2]["attributes"]["SentTimestamp"] = str(SENT_AT + 1)
    age = deployment.now.timestamp() - SENT_AT / 1000
    assert recorded(lambda: route(event, deployment.services), Metric.UNROUTED_SECONDS) == [age]


def test_the_sweep_records_manifests_whose_uploads_are_gone(deployment: Deployment) -> None:
    committed(deployment, deployment.claimed(deployment.queued("a")))
    abort_under_prefix(deployment.raw_s3, "lake", "")
    deployment.wait(timedelta(hours=1))
    assert recorded(lambda: sweep(deployment.services), Metric.SWEEP_VANISHED) == [1]
