"""Lambda function ``run_status``: counts what a run has left open; its Map child decides by it to start another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.ledger import State
from lake.printable import printable
from router.documents import read_document
from router.entry import with_product_errors
from router.job_runs import release_unheld
from router.plan_rows import current_row_pages
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.ledger import ManifestRow


@with_product_errors
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001
    """``{"run": "s3://...", "refusal": "Glue..."}`` -> ``{"open": n, "terminal": n, "held": n}``."""
    return run_status(event, container_services())


def run_status(event: Mapping[str, Any], services: Services) -> dict[str, int]:
    """Count the manifests of a run; ``held`` are open ones that a live run works on.

    A manifest whose owner run has ended is released, so that the next run of this child can claim it. ``refusal`` is
    why Glue did not start the last job run, empty if it did: no log of a job can tell it, so the waiting manifests get
    it as their reason.

    Raises
    ------
    InvalidInputError
        ``run`` is not the URI of a run document, or the document does not exist.
    """
    prefix = f"s3://{services.resources.control_bucket}/"
    uri = event.get("run")
    if not isinstance(uri, str) or not uri.startswith(prefix):
        raise InvalidInputError(f"run = {uri!r} is not a valid run document: pass a URI that begins with {prefix}")
    status, released = {"open": 0, "terminal": 0, "held": 0}, 0
    for rows in current_row_pages(services, read_document(services, uri.removeprefix(prefix))["manifests"]):
        running = [row for row in rows if row.state == State.RUNNING]
        freed = len(release_unheld(services, running))
        _record_refusal(services, rows, str(event.get("refusal") or ""))
        open_rows = sum(row.open for row in rows)
        status["open"] += open_rows
        status["terminal"] += len(rows) - open_rows
        status["held"] += len(running) - freed
        released += freed
    logger.info("run status", run=uri, released=released, counts=status)
    return status


def _record_refusal(services: Services, rows: Iterable[ManifestRow], refusal: str) -> None:
    if not refusal:
        return
    reason = f"its job run did not start: {printable(refusal)}"
    logger.error("job run refused", reason=reason)
    for row in rows:
        if row.state == State.QUEUED:
            services.ledger.reasons.record(row, reason)
