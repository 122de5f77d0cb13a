"""Lambda function ``backfill``: the first states of the machine that a person starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from router.backfill.request import parse_request
from router.listing import find
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"action": "validate", "input"}`` -> the request; ``{"action": "find", "request", "token"}`` -> totals."""
    return backfill(event, container_services())


def backfill(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Validate a request, or look for its objects for a bounded time."""
    action = event.get("action")
    if action == "validate":
        return parse_request(event.get("input"), services).normalised()
    if action == "find":
        result = find(services, parse_request(event.get("request"), services), event.get("token"))
        logger.info("backfill", request=event["request"], **{**result, "token": result["token"] is not None})
        return result
    raise InvalidInputError(f"action = {action!r} is unknown: expected validate or find")
