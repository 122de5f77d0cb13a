"""The deployed sweep notifies readers of an hour: a marker in the lake, and an event that a rule finds."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from lake.layout import complete_marker_key
from lake.manifest import Partition
from tests.e2e.scenario import Scenario
from tests.e2e.waiting import wait_for
from tests.unit.docs.pages import CHECKOUT

PARTITION = Partition("orders", "2026-01-01", 7)


def test_an_hour_is_announced_as_complete_and_as_reopened(scenario: Scenario) -> None:
    # Given a queue that gets the events of the page's rule, and an hour without pending work
    events, sqs = scenario.cloud.client("events"), scenario.cloud.client("sqs")
    page = (CHECKOUT / "docs" / "analysts.md").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"^```json\n(\{\s*\"source\".+?)^```$", page, re.MULTILINE | re.DOTALL)
    url = sqs.create_queue(QueueName="readers")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    stack, now = scenario.deployment, datetime.now(UTC)
    events.put_rule(Name="orders-hours", EventPattern=pattern.replace('"prod"', '"e2e"'))
    events.put_targets(Rule="orders-hours", Targets=[{"Id": "readers", "Arn": arn}])

    def touch(at: datetime) -> None:
        partitions = stack.ledger.partitions
        partitions.touch(PARTITION, at)
        # The index lags.
        wait_for("the hour in the index", lambda: partitions.get(PARTITION) in partitions.unsettled())

    def received() -> dict[str, Any]:
        def message() -> dict[str, Any] | None:
            for item in sqs.receive_message(QueueUrl=url).get("Messages", []):
                sqs.delete_message(QueueUrl=url, ReceiptHandle=item["ReceiptHandle"])
                event: dict[str, Any] = json.loads(item["Body"])
                if event["detail"]["hour"] == PARTITION.stamp:
                    return event
            return None

        return wait_for("an event of the hour", message)

    # When the deployed function sweeps
    touch(now - timedelta(hours=1))
    stack.invoke("sweep", {"dryRun": False})
    # Then the event has the content of the marker
    event, bucket, key = received(), stack.resources.lake_bucket, complete_marker_key(PARTITION)
    marker = json.loads(stack.s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    assert (event["source"], event["detail-type"]) == ("hybrid-router", "Dataset Hour Complete")
    assert event["detail"] == marker
    assert marker["marker"] == f"s3://{bucket}/{key}"
    # When a late file arrives, Then the event reports it, and the marker is deleted
    touch(now)
    stack.invoke("sweep", {"dryRun": False})
    assert received()["detail-type"] == "Dataset Hour Reopened"
    assert "Contents" not in stack.s3.list_objects_v2(Bucket=bucket, Prefix=key)
