"""Lambda function ``backfill``: the first states of the ``backfill`` state machine, which a person starts.

The command line asks it to validate a request before it starts the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from router.backfill.request import parse_backfill
from router.entry import with_product_errors, with_refusals
from router.listing import find_unrecorded
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


@with_product_errors
@with_refusals
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"action": "validate", "input"}`` -> the request; ``{"action": "find", "request", "token"}`` -> totals."""
    return backfill(event, container_services())


def backfill(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Validate a request, or list its objects for a bounded time; ``token`` is null when all are listed.

    Raises
    ------
    InvalidInputError
        Unknown action, invalid request, or a token of another function.
    """
    action = event.get("action")
    if action == "validate":
        return parse_backfill(event.get("input"), services).normalised()
    if action == "find":
        request = parse_backfill(event.get("request"), services)
        result = find_unrecorded(services, request.listing(), event.get("token"))
        logger.info("backfill", request=event["request"], **{**result, "token": result["token"] is not None})
        return result
    raise InvalidInputError(f"action = {action!r} is unknown: expected validate or find")
