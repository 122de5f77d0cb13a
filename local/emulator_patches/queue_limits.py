"""SQS: at most 12 hours of invisibility, 20 seconds of waiting, and 120,000 messages in flight."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ministack.services import sqs  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from local.emulator_patches import EmulatorValue

MAX_VISIBILITY_SECONDS = 43_200
MAX_WAIT_SECONDS = 20
MAX_IN_FLIGHT = 120_000
"""Messages of a standard queue that were received, and are neither deleted nor visible again; AWS says "about".

Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
"""


def patch() -> None:
    """Apply the patches of this file."""
    collect = sqs._collect_msgs
    receive = sqs._HANDLERS["ReceiveMessage"]
    change = sqs._HANDLERS["ChangeMessageVisibility"]
    change_batch = sqs._HANDLERS["ChangeMessageVisibilityBatch"]

    def collect_messages(queue: EmulatorValue, at_most: int, visibility: int) -> EmulatorValue:
        if queue["is_fifo"]:
            return collect(queue, at_most, visibility)
        room = MAX_IN_FLIGHT - _in_flight(queue)
        return collect(queue, min(at_most, room), visibility) if room > 0 else []

    async def receive_message(data: dict[str, Any], queue_url: str) -> EmulatorValue:
        _check("VisibilityTimeout", data, MAX_VISIBILITY_SECONDS)
        _check("WaitTimeSeconds", data, MAX_WAIT_SECONDS)
        answer = await receive(data, queue_url)
        queue = sqs._get_q(data.get("QueueUrl", queue_url))
        # A call that waits for messages gets none and no error.
        polls_once = not int(data.get("WaitTimeSeconds") or queue["attributes"].get("ReceiveMessageWaitTimeSeconds", 0))
        if polls_once and not queue["is_fifo"] and not answer.get("Messages") and _in_flight(queue) >= MAX_IN_FLIGHT:
            raise sqs._Err("OverLimit", "The maximum number of in flight messages is reached.", 403)
        return answer

    def change_visibility(data: dict[str, Any], queue_url: str) -> EmulatorValue:
        _check("VisibilityTimeout", data, MAX_VISIBILITY_SECONDS)
        return change(data, queue_url)

    def change_visibility_batch(data: dict[str, Any], queue_url: str) -> EmulatorValue:
        for entry in data.get("Entries", []):
            _check("VisibilityTimeout", entry, MAX_VISIBILITY_SECONDS)
        return change_batch(data, queue_url)

    sqs._collect_msgs = collect_messages
    sqs._HANDLERS.update(
        {
            "ReceiveMessage": receive_message,
            "ChangeMessageVisibility": change_visibility,
            "ChangeMessageVisibilityBatch": change_visibility_batch,
        }
    )


def _in_flight(queue: EmulatorValue) -> int:
    if len(queue["messages"]) < MAX_IN_FLIGHT:
        return 0
    now = time.time()
    return sum(1 for message in queue["messages"] if message["visible_at"] > now and message["receive_count"])


def _check(name: str, data: dict[str, Any], highest: int) -> None:
    value = data.get(name)
    if value is not None and not 0 <= int(value) <= highest:
        raise sqs._Err(
            "InvalidParameterValue",
            f"Value {value} for parameter {name} is invalid. Reason: Must be >= 0 and <= {highest}, if provided.",
        )
