"""Lambda function ``run_status``: counts what a run has left open; its Map child decides by it to start another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.ledger import State
from lake.ledger.batch_reads import MAX_BATCH_KEYS
from lake.printable import printable
from router.documents import read_document
from router.entry import with_product_errors
from router.job_runs import release_unheld
from router.plan_rows import current_row_pages
from router.run_costs import RunCosts
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.ledger import ManifestRow

REFUSED_RUN = "its job run did not start"
FAILED_RUN = "its last job run failed"
PARALLEL_WRITES = 16
"""Requests at a time."""


@with_product_errors
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001
    """``{"run": "s3://...", "refusal"?, "failure"?, "jobRun"?}`` -> ``{"open": n, "terminal": n, "held": n}``."""
    return run_status(event, container_services())


def run_status(event: Mapping[str, Any], services: Services) -> dict[str, int]:
    """Count the manifests of a run; ``held`` are open ones that a live run works on.

    A manifest whose owner run has ended is released, so that the next run of this child can claim it. ``refusal`` is
    why Glue did not start the last job run, empty if it did: no log of a job can tell it, so the waiting manifests get
    it as their reason. ``failure`` is how the last job run failed, empty if it did not: manifests get it that the run
    has left without a reason, because it could not write the ledger, or ended too early. ``jobRun`` is the id of the
    last job run, empty if it is not known; what it has cost is recorded.

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
    document = read_document(services, uri.removeprefix(prefix))
    costs = RunCosts(uri, document["execution"])
    for rows in current_row_pages(services, document["manifests"]):
        costs.add(rows)
        running = [row for row in rows if row.state == State.RUNNING]
        freed = release_unheld(services, running)
        _record_refusal(services, rows, str(event.get("refusal") or ""))
        _record_failure(services, rows, freed, str(event.get("failure") or ""))
        open_rows = sum(row.open for row in rows)
        status["open"] += open_rows
        status["terminal"] += len(rows) - open_rows
        status["held"] += len(running) - len(freed)
        released += len(freed)
    _record_costs(services, costs, str(event.get("jobRun") or ""))
    logger.info("run status", run=uri, released=released, counts=status)
    return status


def _record_costs(services: Services, costs: RunCosts, job_run: str) -> None:
    """A cost that cannot be recorded, whatever the reason is, holds up no conversion."""
    try:
        costs.record(services, job_run)
    except Exception:
        logger.exception("the costs of a run are not recorded: the next status of the run tries again", run=costs.run)


def _record_refusal(services: Services, rows: Iterable[ManifestRow], refusal: str) -> None:
    if not refusal:
        return
    reason = f"{REFUSED_RUN}: {printable(refusal)}"
    logger.error("job run refused", reason=reason)
    _record(services, [(row, reason) for row in rows if row.state == State.QUEUED])


def _record_failure(
    services: Services, rows: Iterable[ManifestRow], released: Sequence[ManifestRow], failure: str
) -> None:
    if not failure:
        return
    reason = f"{FAILED_RUN}: {printable(failure)}"
    logger.error("job run failed", reason=reason)
    # What the run itself has recorded of a manifest says more.
    waiting = [row for row in rows if row.state == State.QUEUED and _is_unexplained(row)]
    _record(services, [(row, reason) for row in waiting])
    ids = [row.id for row in released]
    for first in range(0, len(ids), MAX_BATCH_KEYS):
        current = services.ledger.manifests.get_many(ids[first : first + MAX_BATCH_KEYS])
        _record(services, [(row, f"{row.reason}; {reason}") for row in current if row and row.state == State.QUEUED])


def _is_unexplained(row: ManifestRow) -> bool:
    return row.reason is None or row.reason.startswith((REFUSED_RUN, FAILED_RUN))


def _record(services: Services, reasons: Sequence[tuple[ManifestRow, str]]) -> None:
    if not reasons:
        return
    with ThreadPoolExecutor(PARALLEL_WRITES) as pool:
        list(pool.map(lambda item: services.ledger.reasons.record(*item), reasons))
