"""IGNORED is a decision by the settings of one day: when a rule comes later, the file gets an owner."""

from datetime import datetime, timedelta
from typing import Any

from lake.manifest import Lane
from lake.manifest_documents import read_manifest
from router.requests.backfill import backfill
from router.route.handler import route
from router.sweep.handler import sweep
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

KEY = "orders/a.json"
REQUEST = {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}


def ignored_file(deployment: Deployment) -> Any:
    """An event whose file no rule routed when it came; returns the event."""
    deployment.configure(datasets=[{"name": "clicks", "prefix": "clicks/"}], peak={"hours": []})
    deployment.raw_s3.put_object(Bucket="input", Key=KEY, Body=b"{}\n")
    head = deployment.raw_s3.head_object(Bucket="input", Key=KEY)
    modified: datetime = head["LastModified"]
    deployment.now = modified + timedelta(seconds=1)
    record = s3_record(KEY, eTag=head["ETag"].strip('"'), versionId=None, size=3, time=modified.isoformat())
    event = batch(message("m1", record))
    assert failures(route(event, deployment.services)) == []
    [row] = deployment.ledger.arrivals.versions("input", KEY)
    assert row.manifest is None
    return event


def add_the_rule(deployment: Deployment) -> None:
    deployment.configure(datasets=[{"name": "orders", "prefix": "orders/"}], peak={"hours": []})


def assert_owned(deployment: Deployment) -> None:
    [queued] = deployment.waiting()
    manifest = read_manifest(deployment.raw_s3, "control", queued, ("input",))
    assert [file.key for file in manifest.files] == [KEY]
    [row] = deployment.ledger.arrivals.versions("input", KEY)
    assert (row.partition, row.lane) == (queued.partition, Lane.BATCH)
    assert row.partition is not None
    assert row.partition.dataset == "orders"
    assert "was IGNORED: no rule of [[datasets]] matches the key" in row.reason


def test_a_redelivery_takes_the_file(deployment: Deployment) -> None:
    event = ignored_file(deployment)
    add_the_rule(deployment)
    for _ in range(2):
        assert failures(route(event, deployment.services)) == []
    assert_owned(deployment)


def test_a_backfill_takes_the_file_and_its_dry_run_counts_it(deployment: Deployment) -> None:
    ignored_file(deployment)
    add_the_rule(deployment)
    event = {"action": "find", "request": {**REQUEST, "dryRun": True}, "token": None}
    assert backfill(event, deployment.services)["recorded"] == 1
    found = [backfill({**event, "request": REQUEST}, deployment.services) for _ in range(2)]
    assert [(result["recorded"], result["known"]) for result in found] == [(1, 0), (0, 1)]
    assert_owned(deployment)


def test_a_sweep_takes_the_file(deployment: Deployment) -> None:
    ignored_file(deployment)
    add_the_rule(deployment)
    deployment.wait(timedelta(hours=7))
    assert sweep(deployment.services)["adopted"] == 1
    assert_owned(deployment)
