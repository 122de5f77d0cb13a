"""Lambda function ``reprocess``: manifests that have ended are converted again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from router.entry import with_product_errors, with_refusals
from router.reprocess.find import find_by_file, find_by_selection
from router.reprocess.report import ReprocessReport
from router.reprocess.request import parse_reprocess
from router.reprocess.requeue import Reprocessing
from router.services import PARALLEL_REQUESTS, Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

TIME_PER_CALL = timedelta(minutes=5)
"""No page of a listing is requested after it; shorter than the function's timeout."""


@with_product_errors
@with_refusals
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"manifests": [...]}``, ``{"files": [...]}`` or ``{"dataset"?, "from"?, "to"?}``; ``"only"?``, ``"dryRun"?``,
    ``"request"?``, ``"token"?`` -> totals, messages, and a token while the selection has not been visited to its end.
    """
    with_id = {"request": context.aws_request_id, **event} if isinstance(event, dict) else event
    return reprocess(with_id, container_services())


def reprocess(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Queue manifests that are FAILED, or DONE without some of their files, for the batch lane.

    Every file of a queued manifest is read again, in the manifest's next generation; what it has published stays until
    that one is published, and after it where a file is gone. ``"only": "all"`` includes DONE manifests that left
    nothing out. A dry run writes nothing, and looks for files that are gone.
    Idempotent: a repetition with the same ``request`` queues nothing twice.

    Raises
    ------
    InvalidInputError
        The input is not valid; says what to pass.
    """
    request = parse_reprocess(event, services)
    report = ReprocessReport.continuing(request.token)
    is_complete = True
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        work = Reprocessing(services, pool, request, report)
        if request.selection is not None:
            stop_at = services.clock() + TIME_PER_CALL
            for rows in find_by_selection(services, pool, request.selection, report, stop_at):
                work.queue_selected(rows)
            is_complete = not report.after
        elif request.files:
            work.queue_named({**find_by_file(services, pool, request.files, report)})
        else:
            work.queue_named(dict.fromkeys(request.manifests))
    logger.info("reprocessed", request=request.id, dry_run=request.dry_run, totals=report.totals)
    return report.answer(dry_run=request.dry_run, request=request.id, complete=is_complete)
