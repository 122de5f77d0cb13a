"""Lambda function ``run_status``: counts what a run has left open, by which its Map child decides to start another.

It reads the planned manifests' current rows, after splits and promotions, and releases those without a live run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from lake.engines import ENGINES, Engine, read_bill, run_is_terminal
from lake.engines.description import Bill
from lake.errors import InvalidDocumentError, InvalidInputError, TerminalError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.manifest_documents import fault_of_blocked_run, read_denied
from lake.successors import follow
from lake.texts import printable
from lake.time import iso_utc
from router.entry import lambda_handler
from router.estimate.night import RunWork, offers, run_seconds
from router.executions.costs import record_costs
from router.services import Services, in_parallel, read_document
from router.telemetry import Metric, count, logger

REFUSED_RUN = "its job run did not start"
FAILED_RUN = "its last job run failed"
PARALLEL_WRITES = 16


def run_status(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    """Count the manifests of a run. ``held``: open manifests that a live run works on. ``denied``: manifests that no
    further job run of the execution tries, because an earlier one lacked permissions.

    A manifest whose owner run has ended is released, so that the next run of this child can claim it. ``jobRun`` is the
    id of the last job run, empty if unknown; its cost is recorded. ``refusal`` is why Glue did not start the last job
    run, or empty. No log of a job can report it, so the waiting manifests get it as their reason. ``failure`` is how
    the last job run failed, or empty. Manifests get it if the run left them without a reason, because it could not
    write the ledger or ended too early; if the run did not begin, they get only its fault, as the run itself records
    it.

    With ``engine``, the engine of the last job run, the answer has the engine of the next one; ``failed`` is whether
    the last job run failed. Raises ``InvalidInputError`` if ``run`` is not the URI of an existing run document.
    """
    prefix = f"s3://{services.resources.control_bucket}/"
    uri = event.get("run")
    if not isinstance(uri, str) or not uri.startswith(prefix):
        raise InvalidInputError(f"run = {uri!r} is not a valid run document: pass a URI that begins with {prefix}")
    document = read_document(services, uri.removeprefix(prefix), "execution", "manifests")
    status, released = {"open": 0, "terminal": 0, "held": 0, "denied": 0}, 0
    try:
        denied = read_denied(services.s3, services.resources.control_bucket, uri)
    except InvalidDocumentError:
        # Each job run fails with this error too. Here the manifests still get a reason, and the cost is recorded.
        logger.exception("the list of denied manifests is damaged", run=uri)
        denied = frozenset()
    every, refusal = list[ManifestRow](), str(event.get("refusal") or "")
    failure, job_run = str(event.get("failure") or ""), str(event.get("jobRun") or "")
    if failure:
        fault = fault_of_blocked_run(failure)
        failure = f"{FAILED_RUN}: {printable(failure)}" if fault is None else printable(fault)
    reason = f"{REFUSED_RUN}: {printable(refusal)}" if refusal else failure
    if reason:
        logger.error("job run refused or failed", reason=reason)
    for rows in current_row_pages(services, document["manifests"]):
        every += rows
        running = [row for row in rows if row.state == State.RUNNING]
        freed = release_unheld(services, running, failure=failure)
        waiting = [row for row in rows if row.state == State.QUEUED]
        if not refusal:
            # What the run itself recorded about a manifest is more precise than how it ended.
            waiting = [row for row in waiting if (row.reason or REFUSED_RUN).startswith((REFUSED_RUN, FAILED_RUN))]
        if reason:
            in_parallel(partial(services.ledger.manifests.record_reason, reason=reason), waiting, PARALLEL_WRITES)
        open_rows = sum(row.open for row in rows)
        status["open"] += open_rows
        status["terminal"] += len(rows) - open_rows
        status["held"] += len(running) - len(freed)
        status["denied"] += sum(row.open and row.state != State.RUNNING and row.id in denied for row in rows)
        released += len(freed)
    record_costs(services, uri, document["execution"], every, job_run)
    logger.info("run status", run=uri, released=released, counts=status)
    if "engine" not in event:
        return status
    return {**status, "engine": _next_engine(services, event, document, status)}


handler = lambda_handler(run_status)
"""``{"run": "s3://...", "refusal"?, "failure"?, "jobRun"?, "engine"?, "failed"?}`` ->
``{"open": n, "terminal": n, "held": n, "denied": n, "engine"?}``."""


def _next_engine(
    services: Services, event: Mapping[str, Any], document: Mapping[str, Any], status: Mapping[str, int]
) -> Engine:
    """The engine of the next job run. No error here holds up a conversion: the run then keeps its engine."""
    engine, job_run = Engine(event["engine"]), str(event.get("jobRun") or "")
    left, now = max(status["open"] - status["denied"], 0), services.clock()
    following, late = engine, 0.0
    try:
        batch_job = services.resources.batch_job
        bill = read_bill(services.job_clients, batch_job, job_run, event["run"]) if job_run else None
        refusal, failed = str(event.get("refusal") or ""), bool(event.get("failed"))
        no_capacity = found_no_capacity(engine, refusal, bill, failed=failed)
        if left:
            following = next_engine(document, engine, now, no_capacity=no_capacity)
            (offer,) = (offer for offer in offers(services.settings) if offer.engine == following)
            work = RunWork(document["coreSeconds"] * left / (status["open"] + status["terminal"]))
            end = now + timedelta(seconds=run_seconds(work, document["workers"], offer))
            late = max(0.0, (end - datetime.fromisoformat(document["deadline"])) / timedelta(minutes=1))
    except Exception:
        logger.exception("the next engine was not chosen: the run keeps its current one", run=event["run"])
        return engine
    if following != engine:
        logger.warning("engine changed", run=event["run"], engine=following, before=engine, no_capacity=no_capacity)
    count(Metric.NIGHT_LATE_MINUTES, late)
    return following


STOPPED = "STOPPED"
NO_ROOM = ("Glue.ConcurrentRunsExceededException", "Glue.ResourceNumberLimitExceededException")
"""Refusals by Glue for which the state machine has repeated the start for hours."""


def found_no_capacity(engine: Engine, refusal: str, bill: Bill | None, *, failed: bool) -> bool:
    """Whether the last job run of a run did not get its workers.

    A job run that waits in vain for spare capacity fails without a billed second. A job run that a person stopped
    proves nothing. ``bill`` is None if it is unknown.
    """
    has_begun = bill is None or bill.seconds or bill.state == STOPPED
    return bool(failed and ENGINES[engine].max_wait_seconds and not has_begun) or refusal.startswith(NO_ROOM)


def next_engine(run: Mapping[str, Any], engine: Engine, now: datetime, *, no_capacity: bool) -> Engine:
    """The engine of the next job run of a run; ``now`` is aware.

    A run continues on the more expensive engine of its plan if it found no capacity, or would begin too late to end
    before the deadline. The first job run follows the same rule, in ``overnight.asl.json``.
    """
    if engine != run["engine"] or not run["fallback"]:
        return engine
    return Engine(run["fallback"]) if no_capacity or iso_utc(now) > run["beginBy"] else engine


def current_row_pages(
    services: Services, manifests: Iterable[str], on_lost: Callable[[int, TerminalError], object] = lambda *_: None
) -> Iterator[list[ManifestRow]]:
    """Rows by consistent reads, page by page; a superseded manifest is replaced by its successors.

    Manifests of the stream lane are omitted, because promoted files no longer belong to a plan. Manifests whose rows
    are damaged or missing are omitted as well: ``on_lost`` gets their number in a page, and the error of one of them.
    """
    damaged: list[TerminalError] = []

    def follows(row: ManifestRow) -> bool:
        return row.state == State.SUPERSEDED and row.lane != Lane.STREAM

    for page in follow(services.ledger, manifests, follows=follows, on_damage=damaged.append):
        lost = [manifest for manifest, row in page if row is None]
        if lost:
            missing = f"the ledger has no row of manifest {lost[0]}, which was planned: restore the ledger to a point"
            error = damaged[0] if damaged else InvalidDocumentError(f"{missing} in time before it was deleted")
            logger.error("manifests left out", manifests=len(lost), error=str(error))
            on_lost(len(lost), error)
            damaged.clear()
        yield [row for _, row in page if row is not None and row.state != State.SUPERSEDED and row.lane != Lane.STREAM]


def queued_successors(services: Services, manifests: Iterable[str]) -> list[ManifestRow]:
    """The QUEUED manifests of the batch lane that now hold the files of ``manifests``, by consistent reads.

    It follows superseded manifests to their successors.
    """
    pages = follow(services.ledger, manifests)
    current = (row for page in pages for _, row in page if row is not None)
    return [row for row in current if row.state == State.QUEUED and row.lane == Lane.BATCH]


def release_unheld(
    services: Services, rows: Iterable[ManifestRow], ended_runs: dict[str, bool] | None = None, failure: str = ""
) -> list[ManifestRow]:
    """Release RUNNING manifests whose lease has expired or whose owner run has ended; returns the released ones.

    ``rows`` are consistent reads of RUNNING manifests. Each owner run is looked up once, in its service, unless
    ``ended_runs`` has it from an earlier call. ``failure`` describes the failed last job run, and is added to the
    reason; empty if it did not fail.
    """
    ended_runs = {} if ended_runs is None else ended_runs
    released = []
    for row in rows:
        reason = reason_to_release(services, row, ended_runs)
        if reason is None:
            continue
        why = f"{reason}; {failure}" if failure else reason
        if services.ledger.manifests.release(row, why, services.clock()):
            released.append(row)
    return released


def reason_to_release(services: Services, row: ManifestRow, ended_runs: dict[str, bool]) -> str | None:
    """Why a RUNNING manifest no longer has a holder; None if it has one."""
    owner = row.owner
    if not row.has_live_lease(services.clock()):
        return f"the lease of run {owner} has expired"
    if owner is None:
        return None
    if owner not in ended_runs:
        resources = services.resources
        # The likeliest shard first, because the job of another one may hold the manifest.
        shards = sorted(services.settings.glue_shards, key=lambda name: name != services.settings.shards.of(row.id))
        stream_jobs = [resources.stream_job_of(shard) for shard in shards]
        jobs = stream_jobs if row.lane == Lane.STREAM else [resources.batch_job]
        ended_runs[owner] = run_is_terminal(services.job_clients, jobs, owner)
    return f"run {owner} has ended without finishing it" if ended_runs[owner] else None
