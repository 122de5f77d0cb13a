"""Refused messages of the arrivals queue come again soon: deployed, it takes 12 minutes, and five times at most."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.scenario import Scenario

ATTRIBUTES = ("VisibilityTimeout", "RedrivePolicy")


@contextmanager
def fast_redelivery(scenario: Scenario) -> Iterator[None]:
    """Until the block is left, ``route`` gets what it has refused after 5 seconds, as often as a busy machine needs."""
    sqs, queue = scenario.cloud.client("sqs"), scenario.deployment.outputs.arrivals_queue
    before = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=list(ATTRIBUTES))["Attributes"]
    often = json.dumps({**json.loads(before["RedrivePolicy"]), "maxReceiveCount": 1000})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "5", "RedrivePolicy": often})
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes=before)
