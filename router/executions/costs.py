"""The costs of a run's job runs: what the engine bills, divided among datasets by the time of their tasks."""

from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError

from lake.engines import ENGINES, read_bill
from lake.engines.description import Bill
from lake.faults import can_pass
from lake.ledger import ManifestRow, State
from lake.ledger.costs import CostRow, CostShare, divide_cost
from lake.manifest import Lane
from router.services import Services
from router.telemetry import logger


def record_costs(services: Services, run: str, execution: str, rows: Sequence[ManifestRow], job_run: str) -> None:
    """Record the missing costs of the job runs of ``run``, the URI of a run document. Idempotent.

    ``rows`` are its manifests. They name the job runs as their holders, so the next call makes up for a lost one.
    ``job_run`` is one more job run, which may have held no manifest; empty if none is known. A job run that was started
    for another run document is recorded with that document. The sweep awaits bills that are not final. No error here
    holds up a conversion. No other call follows the last status of a run, so after an error that can pass the sweep
    records the cost of ``job_run``.
    """
    held = [owner for row in rows for owner in (*row.earlier_owners, row.owner) if owner]
    try:
        for holder in dict.fromkeys([job_run, *held] if job_run else held):
            bill = read_bill(services.job_clients, services.resources.batch_job, holder, run)
            if bill is None:
                logger.info("no bill of a job run yet", job_run=holder, run=run)
            elif not record_cost(services, bill, execution, rows):
                services.ledger.costs.await_bill(holder, services.clock())
    except Exception as error:
        logger.exception("the costs of a run are not recorded", run=run, job_run=job_run)
        if job_run and can_pass(error):
            leave_to_sweep(services, job_run)


def record_cost(
    services: Services, bill: Bill, execution: str, rows: Sequence[ManifestRow], *, estimate: bool = False
) -> bool:
    """Record the cost of a job run whose run has the manifests ``rows``. Returns False if the bill is not final yet.

    With ``estimate``, a bill that is not final is recorded as it is. Idempotent.
    """
    if not (bill.final or estimate):
        return False
    if not bill.final:
        logger.warning("the bill of a job run is an estimate", job_run=bill.id, run=bill.run)
    total = bill.priced(ENGINES[bill.engine].prices(services.settings))
    shares = cost_shares(total, bill.id, rows)
    services.ledger.costs.record(CostRow.of_bill(bill, Lane.BATCH, total, shares, execution))
    return True


def leave_to_sweep(services: Services, job_run: str) -> None:
    """Let the sweep record what a job run has cost.

    An error of AWS is only logged, because it must not hold up a conversion.
    """
    try:
        services.ledger.costs.await_bill(job_run, services.clock())
    except (BotoCoreError, ClientError):
        logger.exception("the bill of a job run is not awaited", job_run=job_run)


def cost_shares(micro_dollars: int, job_run: str, rows: Sequence[ManifestRow]) -> tuple[CostShare, ...]:
    """A job run's cost by dataset. Pure.

    It is divided among the manifests that the run published, by the time of their tasks. If the run published nothing,
    it is divided among the manifests that it held, by their bytes.
    """
    held = [row for row in rows if row.owner == job_run] or [row for row in rows if job_run in row.earlier_owners]
    published = [
        row
        for row in held
        if row.owner == job_run
        and row.state == State.DONE
        and row.published
        and row.published.generation == row.generation
    ]
    shares = list(map(_converted, published)) or [CostShare(row.partition.dataset, 0) for row in held]
    times = [share.task_milliseconds for share in shares]
    weights = times if any(times) else [row.bytes for row in published or held]
    return divide_cost(micro_dollars, shares, weights)


def _converted(row: ManifestRow) -> CostShare:
    assert row.published is not None
    totals = row.published.totals
    objects, written = totals.lake.count + totals.quarantine.count, totals.lake.bytes + totals.quarantine.bytes
    return CostShare(row.partition.dataset, 0, row.bytes, row.files, 1, totals.task_milliseconds, objects, written)
