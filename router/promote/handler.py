"""Lambda function ``promote``: queued files become urgent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from router.entry import with_product_errors, with_refusals
from router.promote.find import find_by_selection, find_by_uri
from router.promote.move import Promotion
from router.promote.report import PromotionReport
from router.promote.request import parse_promotion
from router.services import PARALLEL_REQUESTS, Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


@with_product_errors
@with_refusals
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"files": ["s3://...", ...]}`` or ``{"dataset"?, "from"?, "to"?}``, ``"dryRun"?`` -> counts and messages."""
    return promote(event, container_services())


def promote(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Move files that are queued for the batch lane to the stream lane; a dry run writes nothing.

    Idempotent: a repetition moves nothing twice, and finishes what a crashed invocation has begun.

    Raises
    ------
    InvalidInputError
        Unknown field, neither files nor a selection or both, too many files.
    """
    request = parse_promotion(event, services)
    report = PromotionReport()
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        if request.selection is None:
            files = find_by_uri(services, pool, request.uris, report)
        else:
            files = find_by_selection(services, pool, request.selection, report)
        Promotion(services, pool, report, dry_run=request.dry_run).move(files)
    answer = report.answer(dry_run=request.dry_run)
    logger.info("promoted", dry_run=request.dry_run, counts=report.counts)
    return answer
