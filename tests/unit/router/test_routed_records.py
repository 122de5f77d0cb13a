"""Objects of Firehose: their keys take the lane of the rules, and what it could not deliver belongs to no dataset."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from lake.layout import canary_key
from lake.manifest import Lane
from lake.settings import parse_settings
from lake.settings.records import EXTENSION, FAILED_RECORDS
from router.route.decide_lane import NOT_DELIVERED, decide_lane
from router.route.handler import route
from router.telemetry import metrics
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

STREAM = "arn:aws:kinesis:eu-central-1:111122223333:stream/clicks"
PEAK, NIGHT = (datetime(2026, 11, 23, hour, tzinfo=UTC) for hour in (10, 23))
NAME = f"2026/11/23/10/hybrid-router-prod-web-1-2026-11-23-10-15-00-{UUID(int=1)}"
"""As in the Amazon Data Firehose Developer Guide, "Configure Amazon S3 object name format"."""
FAILED = f"{FAILED_RECORDS}web/processing-failed/2026/11/23/10/hybrid-router-prod-web-1-2026-11-23-10-15-00-0f9c"


def test_records_take_the_lane_of_their_dataset() -> None:
    # Given an object of a delivery stream that the stack makes
    rules = [{"name": "clicks", "prefix": "landing/c"}, {"name": "{folder}"}]
    records = [{"name": "web", "dataset": "clicks", "kinesis_stream": STREAM}]
    settings = parse_settings({"stage": "prod", "datasets": rules, "records": records})
    file = file_of(f"{settings.records[0].folder(settings.datasets)}{NAME}{EXTENSION}", 100)
    # When, Then
    for now, lane in ((PEAK, Lane.STREAM), (NIGHT, Lane.BATCH)):
        decision = decide_lane(file, settings, now)
        assert (decision.dataset, decision.lane, decision.urgent) == ("clicks", lane, False)


def test_names_that_firehose_gives_by_default_are_taken_as_the_reason_says() -> None:
    # Given an object of a delivery stream of one's own, which compresses nothing and has no FileExtension
    file = file_of(f"clicks/{NAME}", 100)
    default = decide_lane(file, parse_settings({"stage": "prod"}), NIGHT)
    assert default.lane is None
    assert default.reason.endswith('add its ending to input.suffixes, or "" to take every name')
    # When
    settings = parse_settings({"stage": "prod", "input": {"suffixes": [".json", ""]}})
    # Then
    assert decide_lane(file, settings, NIGHT).dataset == "clicks"
    assert [settings.input.suffix_of(name) for name in ("a.json", "a", "folder/")] == [".json", "", None]


@pytest.mark.parametrize("extension", ["", ".ndjson", ".ndjson.gz"])
def test_what_was_not_delivered_is_ignored_by_every_rule(extension: str) -> None:
    settings = parse_settings({"stage": "prod", "datasets": [{"name": "rest"}], "urgent": {"keys": ["*"]}})
    decision = decide_lane(file_of(f"{FAILED}{extension}"), settings, PEAK)
    assert (decision.lane, decision.dataset, decision.reason) == (None, None, NOT_DELIVERED)


def test_the_object_of_a_canary_leaves_no_row(deployment: Deployment) -> None:
    # Given an event of a canary's object, whatever the rules take
    key = canary_key("name/object.ndjson")
    assert failures(route(batch(message("1", s3_record(key))), deployment.services)) == []
    # Then it is acknowledged, and the ledger has no arrival
    assert deployment.ledger.arrivals.versions("input", key) == []
    decision = decide_lane(file_of(key), parse_settings({"stage": "prod"}), PEAK)
    assert (decision.lane, decision.dataset) == (None, None)


def test_what_was_not_delivered_is_counted_and_named_in_the_log(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    # Given events of such an object and of another ignored file, then of that file alone
    both, other = [s3_record(FAILED), s3_record("orders/a.csv")], [s3_record("orders/b.csv")]
    for records, expected in ((both, [1]), (other, None)):
        # When
        assert failures(route(batch(message("m1", *records)), deployment.services)) == []
        # Then only the first is counted, and a stage that has none writes no such metric
        written = json.loads(json.dumps(metrics.serialize_metric_set()))
        metrics.clear_metrics()
        assert written.get("FailedRecordFiles") == expected
    assert [line.__dict__["keys"] for line in caplog.records if "could not deliver" in line.message] == [[FAILED]]
    (row,) = deployment.ledger.arrivals.versions("input", FAILED)
    assert (row.manifest, row.reason) == (None, NOT_DELIVERED)
