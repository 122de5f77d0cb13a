"""Lambda function ``promote``: queued files become urgent by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from router.promote.find import named, selected
from router.promote.move import Promotion
from router.promote.report import Report
from router.promote.request import parse_request
from router.services import PARALLEL_REQUESTS, Services, container_services
from router.telemetry import count, logger, metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"files": ["s3://...", ...]}`` or ``{"dataset"?, "from"?, "to"?}``, ``"dryRun"?`` -> counts and sentences."""
    return promote(event, container_services())


def promote(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Move what is queued for the batch lane to the stream lane; a dry run writes nothing.

    Repeating it moves nothing twice, and ends what an invocation that died has begun.

    Raises
    ------
    InvalidInputError
        Unknown field, neither files nor a selection or both, too many files.
    """
    request = parse_request(event, services)
    report = Report()
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        if request.selection is None:
            wanted = named(services, pool, request.names, report)
        else:
            wanted = selected(services, pool, request.selection, report)
        Promotion(services, pool, report, dry_run=request.dry_run).move(wanted)
    answer = report.answer(dry_run=request.dry_run)
    count("PromotedFiles", 0 if request.dry_run else answer["promoted"])
    count("PromotedManifests", 0 if request.dry_run else answer["manifests"])
    logger.info("promoted", dry_run=request.dry_run, counts=report.counts)
    return answer
