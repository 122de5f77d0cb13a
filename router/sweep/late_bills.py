"""Costs whose bill was not final when the run was looked at last are recorded once it is."""

from __future__ import annotations

from datetime import datetime, timedelta

from lake.errors import InvalidInputError
from lake.ledger.costs import DueBill
from router.executions.costs import RunCosts
from router.executions.run_status import current_row_pages
from router.services import Services, read_document
from router.sweep.repair import Repair
from router.telemetry import logger

MAX_BILL_WAIT = timedelta(days=1)
"""After this time what is known of a bill is taken as it is; an assumed value."""


def record_late_bills(repair: Repair) -> None:
    """Record the costs whose bill has become final, each once; the others wait for the next sweep."""
    services = repair.services
    for due in services.ledger.costs.due_bills():
        if repair.expired:
            return
        with repair.isolated(due.job_run):
            _record(services, due)


def _record(services: Services, due: DueBill) -> None:
    now = services.clock()
    overdue = now - datetime.fromisoformat(due.since) > MAX_BILL_WAIT
    try:
        key = due.run.removeprefix(f"s3://{services.resources.control_bucket}/")
        document = read_document(services, key, "execution", "manifests")
    except InvalidInputError as error:
        if not overdue:
            raise
        logger.error("the cost of a job run is not recorded", job_run=due.job_run, run=due.run, reason=str(error))
        services.ledger.costs.close_bill(due.job_run, now)
        return
    costs = RunCosts(due.run, document["execution"])
    for rows in current_row_pages(services, document["manifests"]):
        costs.add(rows)
    recorded = costs.record_late(services, due.job_run, estimate=overdue)
    if not recorded and overdue:
        logger.error("a job run has no bill: its cost is not recorded", job_run=due.job_run, run=due.run)
    if recorded or overdue:
        services.ledger.costs.close_bill(due.job_run, now)
