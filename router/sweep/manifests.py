"""Continues or reports manifests that wait, are held or are being published for too long.

Also takes ownership of the arrivals in intents of crashed invocations, however old the files are, and divides
collections whose hour is over or that a crashed process has left closed.
"""

import random
from datetime import datetime, timedelta

from lake.layout import INTENTS, list_objects, pointer_prefix
from lake.ledger import State
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.publish import roll_forward
from lake.settings.operation import POINTER_MINUTES, PUBLISHING_MINUTES
from router.divide import MAX_INDEX_WRITES_PER_SECOND, WritePace, divide, is_over
from router.executions.costs import leave_to_sweep
from router.executions.run_status import reason_to_release
from router.ownership.owner import write_pointer
from router.ownership.resolve import OWNER_GRACE, read_intent, without_known
from router.ownership.take import ArrivalOutcome, take_ownership
from router.requests.resubmit import is_recorded
from router.stream.runs import ensure_running
from router.sweep.repair import Repair
from router.telemetry import logger


def release_leases(repair: Repair) -> None:
    """Release RUNNING manifests whose lease has expired or whose owner run has ended; counts them as ``released``."""
    services, ended_runs, awaited = repair.services, dict[str, bool](), set[str]()
    for lane in Lane:
        for hint in repair.in_time(services.ledger.manifests.open(lane, State.RUNNING, repair.report)):
            with repair.isolated("lease", manifest_id=hint.id):
                # First by the hint, with one request for each run: at night many runs hold hundreds of manifests each.
                if reason_to_release(services, hint, ended_runs) is None:
                    continue
                row = services.ledger.manifests.get(hint.id)
                if row is None or row.state != State.RUNNING:
                    continue
                reason = reason_to_release(services, row, ended_runs)
                if reason is None or repair.only_counts("released", f"manifest {row.id}: {reason}"):
                    continue
                if row.owner is not None and row.owner not in awaited and lane == Lane.BATCH:
                    # Before the release: if its answer is lost, nothing else finds the run.
                    awaited.add(row.owner)
                    leave_to_sweep(services, row.owner)
                if services.ledger.manifests.release(row, reason, services.clock()):
                    repair.counts["released"] += 1
                    logger.warning("manifest released", manifest_id=row.id, owner=row.owner, attempt=row.attempt)


def renew_pointers(repair: Repair) -> None:
    """Write one more pointer to each waiting manifest, and ensure that the streaming job of its shard runs.

    The first pointer may never have been written, or a checkpoint that is lost by now contained it.

    A pointer in the inbox may have been read already, so it proves nothing. But each pointer in the inbox doubles the
    wait for the next one, so that the inbox stays small while no stream runs. Each sweep starts the job if a manifest
    has waited long enough or has a pointer, because quotas may have room long before the next pointer is due. A failed
    start is reported only if a manifest has waited long enough, because a run that is just ending should raise no
    alarm. Counts ``repointed``.
    """
    services = repair.services
    limit = timedelta(minutes=POINTER_MINUTES)
    shards = services.settings.shards
    waiting: set[str] = set()
    late: set[str] = set()
    for hint in repair.in_time(services.ledger.manifests.open(Lane.STREAM, State.QUEUED, repair.report)):
        with repair.isolated("pointer", manifest_id=hint.id):
            row = services.ledger.manifests.get(hint.id)
            if row is None or row.state != State.QUEUED or row.lane != Lane.STREAM:
                continue
            shard, waited = shards.of(row.id), services.clock() - datetime.fromisoformat(row.changed_at)
            if waited >= limit:
                late.add(shard)
            elif shard in waiting:
                continue
            prefix = pointer_prefix(row.id, urgent=row.urgent, shard=shard)
            inbox = services.s3.list_objects_v2(Bucket=services.resources.control_bucket, Prefix=prefix)
            if inbox["KeyCount"]:
                waiting.add(shard)
            if waited < limit * (1 << max(inbox["KeyCount"] - 1, 0)):
                continue
            if repair.only_counts("repointed", f"manifest {row.id}"):
                continue
            write_pointer(services, row.id, urgent=row.urgent)
            repair.counts["repointed"] += 1
            logger.warning("pointer renewed", manifest_id=row.id, queued_since=row.changed_at)
    errors = {} if repair.dry_run else ensure_running(services, sorted(waiting | late))
    for shard in sorted(late & errors.keys()):
        repair.report(errors[shard])


def finish_publishing(repair: Repair) -> None:
    """Finish publishes that take longer than ``PUBLISHING_MINUTES``.

    Counts ``rolledForward`` manifests, which are DONE, and ``vanished`` ones, FAILED because their uploads are gone.
    """
    services, limit = repair.services, timedelta(minutes=PUBLISHING_MINUTES)
    s3, ledger, clock, resources = services.s3, services.ledger, services.clock, services.resources
    open_rows = (row for lane in Lane for row in ledger.manifests.open(lane, State.PUBLISHING, repair.report))
    for hint in repair.in_time(open_rows):
        with repair.isolated("publish", manifest_id=hint.id):
            row = ledger.manifests.get(hint.id)
            if row is None or row.state != State.PUBLISHING or clock() - datetime.fromisoformat(row.changed_at) < limit:
                continue
            if repair.only_counts("rolledForward", f"manifest {row.id}"):
                continue
            has_table, buckets = services.settings.has_table(row.partition.dataset), resources.output_buckets
            state = roll_forward(s3, ledger, resources.control_bucket, row, clock, buckets, has_table=has_table)
            repair.counts["rolledForward"] += state == State.DONE
            repair.counts["vanished"] += state == State.FAILED
            logger.warning("publish rolled forward", manifest_id=row.id, state=state, publishing_since=row.changed_at)


def report_stalled(repair: Repair) -> None:
    """Report manifests that are open for longer than ``schedule.settled_after``; counts them as ``stalled``.

    The age of a reprocessed manifest begins with its last reprocess.
    """
    services = repair.services
    limit = services.settings.schedule.settled_after
    for lane in Lane:
        for state in OPEN_STATES:
            for row in services.ledger.manifests.open(lane, state, repair.report):
                # Oldest first: the rest of this state is younger.
                if repair.expired or services.clock() - datetime.fromisoformat(row.created_at) < limit:
                    break
                if services.clock() - datetime.fromisoformat(row.queued_at) < limit:
                    continue
                repair.counts["stalled"] += 1
                logger.warning(
                    "manifest without progress",
                    manifest_id=row.id,
                    state=state,
                    lane=lane,
                    created_at=row.created_at,
                    attempt=row.attempt,
                    reason=row.reason,
                )


def resume_intents(repair: Repair) -> None:
    """Repeat intents that are older than ``OWNER_GRACE``; counts the newly owned arrivals as ``resumed``.

    The order is random, so that intents whose arrivals stay UNSETTLED do not always hold up the same others.
    """
    services = repair.services
    keys = [item["Key"] for item in list_objects(services.s3, services.resources.control_bucket, INTENTS)]
    random.shuffle(keys)
    for key in repair.in_time(keys):
        with repair.isolated("intent", key=key):
            _resume(repair, key)


def _resume(repair: Repair, key: str) -> None:
    """Take ownership again, unless the invocation that wrote the intent may still be alive."""
    services = repair.services
    try:
        intent = read_intent(services, key)
    except services.s3.exceptions.NoSuchKey:
        return
    if services.clock() - datetime.fromisoformat(intent.recorded_at) <= OWNER_GRACE:
        return
    arrivals = [arrival for arrival in intent.arrivals if is_recorded(services, arrival)]
    if repair.dry_run:
        for arrival in without_known(services.ledger, arrivals):
            repair.only_counts("resumed", arrival.file.uri)
        return
    ownership = take_ownership(services, arrivals, {}, skip_known=True, intent=key)
    repair.counts["resumed"] += ownership.count(ArrivalOutcome.OWNED)
    logger.warning(
        "intent resumed",
        key=key,
        recorded_at=intent.recorded_at,
        outcomes={outcome: ownership.count(outcome) for outcome in ArrivalOutcome},
    )


def divide_collections(repair: Repair) -> None:
    """Divide closed collections and those of past hours, oldest hours first; counts them as ``divided``."""
    services = repair.services
    # Half of the writes, because a plan may divide at the same time.
    pace = WritePace(MAX_INDEX_WRITES_PER_SECOND // 2)
    for row in repair.in_time(services.ledger.collections.open()):
        if row.closed_at is None and not is_over(row.id.hour, services.clock()):
            continue
        if repair.only_counts("divided", f"collection {row.id}"):
            continue
        with repair.isolated("collection", collection=str(row.id)):
            divide(services, row.id, pace)
            repair.count("divided")
