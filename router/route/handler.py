"""Lambda function ``route``: acknowledges each SQS message of a batch after the ledger has its arrivals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent
from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import InvalidInputError, TransientError
from lake.faults import NO_ANSWER, Fault, can_pass, judge
from lake.layout import CANARY
from lake.manifest import Identity, ObjectVersion, Partition
from lake.settings.records import FAILED_RECORDS
from router.entry import lambda_handler
from router.ownership.owner import RoutedArrival
from router.ownership.take import ArrivalOutcome, Ownership, take_ownership
from router.route.decide_lane import decide_lanes
from router.route.events import VersionLookup, deliver_again, parse_events, receives
from router.services import Services
from router.stream.runs import FailedStartsError, ensure_running
from router.telemetry import Metric, count, count_bytes, logger

START_TRIES = 3
"""Deliveries of an event in which ``route`` tries to start the stream for an owned file. Then the sweep starts it; the
event does not end among the dead letters, because nothing else of it is left to do."""


def route(event: SQSEvent, services: Services) -> dict[str, Any]:
    """Own every arrival of the batch; returns the messages that SQS must redeliver.

    A message that is not a valid S3 event, or whose arrivals cannot be routed, fails alone. Idempotent. Raises
    ``BotoCoreError`` or ``ClientError`` if all messages lack a permission or resource: SQS redelivers all of them.
    """
    messages: dict[str, list[ObjectVersion]] = {}
    by_id = {message.message_id: message for message in event.records}
    failed = []
    lookup = VersionLookup(services)
    for message in event.records:
        try:
            messages[message.message_id] = [lookup.complete(announced) for announced in parse_events(message)]
        except (InvalidInputError, BotoCoreError, ClientError) as error:
            logger.error("message refused: it is redelivered", message_id=message.message_id, error=str(error))
            failed.append(message.message_id)
    ownership = Ownership()
    not_routed = _own_messages(services, messages, ownership)
    unsettled = {identity for identity, outcome in ownership.outcomes.items() if outcome == ArrivalOutcome.UNSETTLED}
    # After failed starts a redelivery would start nothing earlier; a watch or a sweep starts it and reports the reason.
    not_started = {
        identity
        for shard, error in ensure_running(services, ownership.waiting_in_stream).items()
        if not isinstance(error, FailedStartsError)
        for identity in ownership.waiting_in_stream[shard]
    }
    failed += [
        message
        for message, files in messages.items()
        if message in not_routed
        or not unsettled.isdisjoint(identities := set(map(Identity.of, files)))
        or (receives(by_id[message]) < START_TRIES and not not_started.isdisjoint(identities))
    ]
    redelivered = [by_id[message] for message in failed]
    deliver_again(services, redelivered)
    if redelivered:
        oldest = min(int(message.attributes.sent_timestamp) for message in redelivered)
        count(Metric.UNROUTED_SECONDS, services.clock().timestamp() - oldest / 1000)
    _record(ownership, len(failed))
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


handler = lambda_handler(lambda event, services: route(SQSEvent(event), services))
"""SQS batch of S3 events -> ``{"batchItemFailures": [{"itemIdentifier": ...}]}``."""


def _own_messages(services: Services, messages: Mapping[str, list[ObjectVersion]], ownership: Ownership) -> set[str]:
    """Route the arrivals of all messages together, and add the outcome to ``ownership``; returns messages to redeliver.

    An error that is not a fault of the environment can be caused by one message. Each half is then routed separately,
    so that only this message fails. Raises errors that concern every message and stay until a person acts.
    """
    # The objects of a canary are deleted soon and leave no row.
    files = (file for files in messages.values() for file in files if not file.key.startswith(CANARY))
    try:
        ownership.include(route_arrivals(services, {Identity.of(file): file for file in files}.values()))
    except Exception as error:
        passes = can_pass(error) or isinstance(error, TransientError)
        if judge(error) == Fault.ENVIRONMENT and not passes:
            raise
        if passes or len(messages) <= 1:
            logger.exception("messages not routed: they are redelivered", extra={"message_ids": list(messages)})
            return set(messages)
    else:
        return set()
    names, half = list(messages), len(messages) // 2
    parts = ({name: messages[name] for name in part} for part in (names[:half], names[half:]))
    return {name for part in parts for name in _own_messages(services, part, ownership)}


def route_arrivals(services: Services, arrivals: Iterable[ObjectVersion]) -> Ownership:
    """Decide the lane of each arrival and take ownership. Each object version may be given once.

    An arrival is UNSETTLED if S3 did not answer what its lane depends on.
    """
    now, own = services.clock(), services.resources.input_bucket
    of_input, ignored = [], {}
    for arrival in arrivals:
        if arrival.bucket == own:
            of_input.append(arrival)
        else:
            reason = f"the bucket {arrival.bucket} is not the input of this deployment: copy its data to {own}"
            ignored[arrival] = reason
    routed, undecided = [], []
    for arrival, decision in decide_lanes(services, of_input, now).items():
        if decision is NO_ANSWER:
            undecided.append(arrival)
        elif decision.lane is None or decision.dataset is None:
            ignored[arrival] = decision.reason
        else:
            partition = Partition.of(decision.dataset, datetime.fromisoformat(arrival.arrived_at))
            routed.append(RoutedArrival(arrival, partition, decision.lane, decision.reason, urgent=decision.urgent))
    ownership = take_ownership(services, routed, ignored)
    ownership.set_outcome(undecided, ArrivalOutcome.UNSETTLED)
    return ownership


def _record(ownership: Ownership, failed: int) -> None:
    counts = Counter(str(outcome) for outcome in ownership.outcomes.values())
    logger.info(
        "routed",
        arrivals=len(ownership.outcomes),
        outcomes=counts,
        manifests=len(ownership.manifests),
        parts=len(ownership.parts),
        not_acknowledged=failed,
    )
    count(Metric.ARRIVALS, len(ownership.outcomes))
    count(Metric.FILES_BEYOND_DATASET_LIMIT, ownership.beyond_dataset_limit)
    if ownership.newly_ignored:
        reasons = Counter(ownership.newly_ignored.values())
        logger.warning("files ignored", reasons=dict(reasons.most_common(10)))
        count(Metric.IGNORED_FILES, len(ownership.newly_ignored))
    keys = [
        identity.key
        for identity, outcome in ownership.outcomes.items()
        if outcome == ArrivalOutcome.IGNORED and identity.key.startswith(FAILED_RECORDS)
    ]
    if keys:
        # Only if there are any, so that other stages are not billed for the metric.
        logger.warning("records that Firehose could not deliver", keys=keys)
        count(Metric.FAILED_RECORD_FILES, len(keys))
    count_bytes(Metric.STREAM_BYTES, sum(manifest.bytes for manifest in ownership.manifests))
    count_bytes(Metric.BATCH_BYTES, sum(part.bytes for part in ownership.parts))
