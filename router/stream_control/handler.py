"""Lambda function ``stream_control``: the actions of the ``stream_window`` state machine on the streaming job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from router.entry import with_product_errors
from router.services import Services, container_services
from router.stream_control.control import kill, start, stop, watch
from router.telemetry import Metric, count, count_bytes, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

ACTIONS = {"start": start, "watch": watch, "stop": stop, "kill": kill}


@with_product_errors
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"action": "start" | "watch" | "stop" | "kill"}`` -> ``{"running", "windowOver", "stopped", ...}``."""
    return stream_control(event, container_services())


def stream_control(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Take one action and record its metrics; raises ``InvalidInputError`` for an unknown action."""
    action = event.get("action")
    if action not in ACTIONS:
        raise InvalidInputError(f"action = {action!r} is unknown: expected one of {', '.join(ACTIONS)}")
    result = ACTIONS[action](services)
    count(Metric.STREAM_RUNNING, result["running"])
    if "backlogBytes" in result:
        count_bytes(Metric.STREAM_BACKLOG_BYTES, result["backlogBytes"])
        count(Metric.STREAM_SPILLING, result["spilling"])
        count(Metric.MICRO_BATCH_MINUTES, result["microBatchMinutes"])
    logger.info("stream control", action=action, result=result)
    return result
