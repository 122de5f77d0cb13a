"""Lambda function ``route``: a batch of SQS messages, each acknowledged once the ledger has its arrivals."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent, event_source
from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import InvalidInputError
from lake.manifest import Identity, Lane
from lake.partition import Partition
from router.ownership import ArrivalOutcome, Ownership, RoutedArrival, take_ownership
from router.route.decide_lane import decide_lane
from router.route.lookup import VersionLookup
from router.route.parse import parse_events
from router.services import Services, container_services
from router.streaming import ensure_running
from router.telemetry import Metric, count_bytes, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.manifest import ObjectVersion


@logger.inject_lambda_context
@metrics.log_metrics
@event_source(data_class=SQSEvent)
def handler(event: SQSEvent, context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """SQS batch of S3 events -> ``{"batchItemFailures": [{"itemIdentifier": ...}]}``."""
    return route(event, container_services())


def route(event: SQSEvent, services: Services) -> dict[str, Any]:
    """Own every arrival of the batch; returns the messages that SQS has to redeliver.

    A message that is not a valid S3 event fails alone. Idempotent.
    """
    messages: dict[str, list[Identity]] = {}
    arrivals: dict[Identity, ObjectVersion] = {}
    failed = []
    lookup = VersionLookup(services)
    for message in event.records:
        try:
            files = [lookup.complete(announced) for announced in parse_events(message)]
        except (InvalidInputError, BotoCoreError, ClientError) as error:
            logger.error("message refused: it is redelivered", message_id=message.message_id, error=str(error))
            failed.append(message.message_id)
            continue
        messages[message.message_id] = [Identity.of(file) for file in files]
        for file in files:
            # The later of two events tells that the file was put again.
            known = arrivals.get(Identity.of(file), file)
            arrivals[Identity.of(file)] = max(file, known, key=lambda version: version.arrived_at)
    ownership = route_arrivals(services, arrivals.values())
    unsettled = {identity for identity, outcome in ownership.outcomes.items() if outcome == ArrivalOutcome.UNSETTLED}
    if ownership.waiting_in_stream and not _ensure_stream_runs(services):
        unsettled |= ownership.waiting_in_stream
    failed += [message for message, identities in messages.items() if not unsettled.isdisjoint(identities)]
    _record(ownership, len(failed))
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def route_arrivals(services: Services, arrivals: Iterable[ObjectVersion]) -> Ownership:
    """Decide the lane of each arrival and take ownership; each object version may be given once."""
    now, health = services.clock(), services.ledger.stream.get()
    routed, ignored = [], {}
    for arrival in arrivals:
        if arrival.bucket != services.resources.input_bucket:
            ignored[arrival] = f"the bucket {arrival.bucket} is not the input of this deployment"
            continue
        decision = decide_lane(arrival, services.settings, now, health)
        if decision.lane is None or decision.dataset is None:
            ignored[arrival] = decision.reason
            continue
        partition = Partition.of(decision.dataset, datetime.fromisoformat(arrival.arrived_at))
        routed.append(RoutedArrival(arrival, partition, decision.lane, decision.reason))
    return take_ownership(services, routed, ignored)


def _ensure_stream_runs(services: Services) -> bool:
    try:
        if ensure_running(services):
            logger.info("streaming run started")
    except (BotoCoreError, ClientError) as error:
        logger.warning("streaming run not started: its events are redelivered", error=str(error))
        return False
    return True


def _record(ownership: Ownership, failed: int) -> None:
    counts = Counter(str(outcome) for outcome in ownership.outcomes.values())
    manifests = Counter(str(manifest.lane) for manifest in ownership.manifests)
    logger.info(
        "routed", arrivals=len(ownership.outcomes), outcomes=counts, manifests=manifests, not_acknowledged=failed
    )
    for lane, metric in ((Lane.STREAM, Metric.STREAM_BYTES), (Lane.BATCH, Metric.BATCH_BYTES)):
        count_bytes(metric, sum(manifest.bytes for manifest in ownership.manifests if manifest.lane == lane))
