"""Lambda function ``sweep``: measures what alarms read, then tries each repair in turn for a limited time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from lake.engines import read_bill
from lake.engines.description import MICRO
from lake.faults import can_pass
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.settings import Settings
from router.entry import lambda_handler
from router.executions.costs import record_cost
from router.executions.run_status import current_row_pages
from router.requests.selection import parse_flag
from router.services import Services, own_client, read_document
from router.stream.runs import has_valid_heartbeat
from router.sweep.hours import announce_hours
from router.sweep.leftovers import abort_uploads, delete_replaced, delete_table_files
from router.sweep.manifests import (
    divide_collections,
    finish_publishing,
    release_leases,
    renew_pointers,
    report_stalled,
    resume_intents,
)
from router.sweep.missed import adopt_missed, adopt_missed_of_old_days
from router.sweep.repair import Repair
from router.telemetry import Metric, count, logger

TIME_PER_SWEEP = timedelta(minutes=10)
"""Time after which no item of a repair is begun; current work then has the rest of the function's timeout (15 minutes).

Each repair gets an equal share of the time that earlier repairs have left, so that none starves. The last one gets all
of it, because most hours are due just after the end of an hour.
"""
COUNTS = {
    "rolledForward": "publishes finished",
    "vanished": "publishes FAILED, because uploads are gone",
    "released": "manifests released",
    "repointed": "pointers written again",
    "resumed": "files of interrupted invocations owned",
    "adopted": "missed files owned",
    "divided": "collections divided into manifests",
    "aborted": "stray uploads aborted",
    "deleted": "replaced objects deleted",
    "stalled": "manifests without progress ('hybrid-router status' shows the backlog of each lane)",
    "completed": "hours announced as complete",
    "reopened": "hours announced as reopened",
    "aboveShare": "complete hours above alarms.max_quarantined_share",
}
"""The kinds of items that a sweep counts, with their texts for people."""


def sweep(services: Services, *, dry_run: bool = False) -> dict[str, Any]:
    """Try every repair; returns the number of repaired items by kind.

    A dry run counts what the next sweep would repair, and names the first items. It changes nothing, records no metric
    and saves no position. Raises ``Exception``: the first error of an item or a repair, after all others were tried;
    the log names each item.
    """
    end, repairs = services.clock() + TIME_PER_SWEEP, _repairs(services.settings, dry_run=dry_run)
    repair = Repair(services, end, dry_run=dry_run)
    for left, (name, work) in zip(range(len(repairs), 0, -1), repairs, strict=True):
        now = services.clock()
        repair.stop_at = now + (end - now) / left
        with repair.isolated(name):
            work(repair)
    done: dict[str, Any] = {kind: repair.counts[kind] for kind in COUNTS}
    if not dry_run:
        count(Metric.SWEEP_VANISHED, done["vanished"])
        count(Metric.SWEEP_STALLED, done["stalled"])
        count(Metric.HOURS_ABOVE_QUARANTINED_SHARE, done["aboveShare"])
    logger.info("swept", errors=len(repair.errors), counts=done, dry_run=dry_run)
    if repair.errors:
        raise repair.errors[0]
    return {**done, "items": repair.items} if dry_run else done


handler = lambda_handler(
    lambda event, services: sweep(
        replace(services, events=own_client("events")), dry_run=parse_flag(event or {}, "dryRun")
    )
)
"""``{"dryRun"?}`` -> a count for each of ``COUNTS``; a dry run adds ``"items"``, the first to be repaired."""


def _repairs(settings: Settings, *, dry_run: bool) -> list[tuple[str, Callable[[Repair], object]]]:
    # The measurements for alarms come first, because they are short.
    measured = [("stream", _measure_stream), ("bills", record_late_bills), ("costs", _measure_costs)]
    return [
        *(() if dry_run else measured),
        ("ledger.keep_days", _check_versions),
        ("publishing", finish_publishing),
        ("leases", release_leases),
        ("pointers", renew_pointers),
        ("intents", resume_intents),
        ("missed", adopt_missed),
        ("missed in folders of old days", adopt_missed_of_old_days),
        ("collections", divide_collections),
        ("uploads", abort_uploads),
        ("stalled", report_stalled),
        ("replaced objects", delete_replaced),
        *([("table files", delete_table_files)] if settings.has_tables else []),
        ("hours", announce_hours),
    ]


def _check_versions(repair: Repair) -> None:
    """Raise ``InvalidSettingsError`` if arrival rows should expire and the input bucket keeps no versions."""
    services = repair.services
    ledger, bucket = services.settings.ledger, services.resources.input_bucket
    if ledger.keep_days:
        ledger.check_versions(bucket, services.s3.get_bucket_versioning(Bucket=bucket).get("Status"))


def _measure_stream(repair: Repair) -> None:
    """Measure the stream lane, even while none of its jobs or watches runs.

    The ages are from the index, which can lag by some seconds. A shard is silent if its window is open and its row has
    no valid heartbeat, which is also true while its run is starting.
    """
    services, now = repair.services, repair.services.clock()
    # The index lists the manifests of a state by age.
    oldest = [
        first.created_at
        for state in OPEN_STATES
        if (first := next(services.ledger.manifests.open(Lane.STREAM, state, repair.report), None)) is not None
    ]
    age = now - datetime.fromisoformat(min(oldest)) if oldest else timedelta()
    silent = []
    for shard in services.settings.shards.names:
        row = services.ledger.stream.of(shard).get()
        in_window = row.window_until is not None and now < datetime.fromisoformat(row.window_until)
        if in_window and not has_valid_heartbeat(services, row):
            silent.append(shard)
    if silent:
        logger.warning("streaming jobs do not report that they are alive", shards=silent)
    count(Metric.STREAM_OLDEST_MINUTES, age / timedelta(minutes=1))
    count(Metric.STREAM_SILENT, len(silent))


LATE_BILLS = timedelta(hours=6)
"""Time after the end of a day (UTC) in which its costs are still measured, for its last bills; an assumed value."""


def _measure_costs(repair: Repair) -> None:
    """Measure the costs of today, or those of yesterday while its last bills may arrive, if they are higher."""
    now = repair.services.clock()
    sums = repair.services.ledger.costs.day_sums((now - LATE_BILLS).date(), now.date())
    count(Metric.DAY_DOLLARS, max(sums.values(), default=0) / MICRO)


MAX_BILL_WAIT = timedelta(days=1)
"""Time after which an incomplete bill is recorded as it is; an assumed value."""


def record_late_bills(repair: Repair) -> None:
    """Record each cost whose bill has become final, once; other bills wait for the next sweep."""
    services = repair.services
    for due in repair.in_time(services.ledger.costs.due_bills()):
        with repair.isolated(due.job_run):
            now, recorded = services.clock(), False
            overdue = now - datetime.fromisoformat(due.since) > MAX_BILL_WAIT
            try:
                recorded = _record_cost(services, due.job_run, estimate=overdue)
            except Exception as error:
                if not overdue or can_pass(error):
                    raise
                logger.exception("the bill of a job run cannot be read", job_run=due.job_run)
            if overdue and not recorded:
                logger.error("the cost of a job run is not recorded", job_run=due.job_run)
            if recorded or overdue:
                services.ledger.costs.close_bill(due.job_run, now)


def _record_cost(services: Services, job_run: str, *, estimate: bool) -> bool:
    """Like ``costs.record_cost``; also False without a bill, or if a person started the job run without a document."""
    bill = read_bill(services.job_clients, services.resources.batch_job, job_run)
    if bill is None or bill.run is None:
        return False
    key = bill.run.removeprefix(f"s3://{services.resources.control_bucket}/")
    document = read_document(services, key, "execution", "manifests")
    rows = [row for page in current_row_pages(services, document["manifests"]) for row in page]
    return record_cost(services, bill, document["execution"], rows, estimate=estimate)
