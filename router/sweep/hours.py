"""Hours that became complete, and complete hours that something came to: readers are told.

The ledger's index lists the hours that are not settled, so the work of a sweep is bounded by their number. One batched
read asks about 100 of them, by a manifest that each waits for; all manifests of an hour are read once that one is done.
Hours are looked at side by side: an hour that becomes complete takes seven requests, one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lake.hours import may_be_complete, may_confirm, read_hour, state_of_hour
from lake.ledger import HourCounts, HourRow, HourState, State
from lake.ledger.table import batches_of
from router.services import PARALLEL_REQUESTS
from router.sweep.hour_marker import announce, confirm
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.partition import Partition
    from router.sweep.repair import Repair

KINDS = {HourState.COMPLETE: "completed", HourState.REOPENED: "reopened"}
"""What a sweep counts."""
UNFINISHED = (State.FAILED, State.COLLECTED)
"""States that keep an hour waiting until a person acts."""


def announce_hours(repair: Repair) -> None:
    """Announce hours that are complete or reopened; counts them as ``completed`` and ``reopened``."""
    partitions = repair.services.ledger.partitions
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        for listed in batches_of(partitions.unsettled()):
            # What was begun is finished first, and readers learn at once that an hour is no longer complete.
            told = [row for row in listed if row.announced != row.revision or row.told == HourState.COMPLETE]
            waiting = [row for row in listed if row.announced == row.revision and row.told != HourState.COMPLETE]
            unconfirmed = [row for row in waiting if may_confirm(row, repair.services.clock())]
            due = [row.partition for row in dict.fromkeys([*told, *unconfirmed, *_due(repair, waiting)])]
            # The index is a hint: the rows decide.
            deque(pool.map(partial(_look_unless_expired, repair), partitions.get_many(due) if due else []), maxlen=0)
            if repair.expired:
                return


def _look_unless_expired(repair: Repair, row: HourRow) -> None:
    if not repair.expired:
        with repair.isolated("hour", partition=str(row.partition)):
            _look(repair, row)


def _due(repair: Repair, rows: Sequence[HourRow]) -> list[HourRow]:
    """Those that are quiet, and do not wait for the manifest that the last look has met."""
    services = repair.services
    quiet = [row for row in rows if may_be_complete(row, services.clock())]
    met = sorted({row.waits_for for row in quiet if row.waits_for is not None})
    current = dict(zip(met, services.ledger.manifests.get_many(met), strict=True)) if met else {}
    waiting = {name for name, row in current.items() if row is not None and (row.open or row.state in UNFINISHED)}
    return [row for row in quiet if row.waits_for not in waiting]


def _look(repair: Repair, row: HourRow) -> None:
    """One look at an hour; whatever has changed since ``row`` was read is refused by its revision, or touches it."""
    services, partitions = repair.services, repair.services.ledger.partitions
    if row.announced < row.revision:
        _announce(repair, row, row.told)
        return
    if row.told == HourState.COMPLETE and not row.is_settled:
        _announce(repair, row, HourState.REOPENED)
        return
    if may_confirm(row, services.clock()) and not repair.dry_run:
        confirm(services, row)
    if row.told != HourState.COMPLETE:
        has_table = services.settings.has_table(row.partition.dataset)
        contents = read_hour(services.ledger, row.partition, has_table=has_table, until_waiting=True)
        if contents.waits_for is None:
            # Read after the rows: a generation above the first is DONE in the transaction that makes its deletion due.
            may_show = contents.was_reprocessed and not has_table
            shows_replaced = may_show and services.ledger.deletions.is_pending(row.partition)
            state = state_of_hour(row, contents, services.clock(), shows_replaced=shows_replaced)
            if state == HourState.COMPLETE and _is_closed(repair, row.partition):
                _count_share(repair, row.partition, contents.stream_lane.quarantined_share)
                _announce(repair, row, HourState.COMPLETE, contents.counts())
        elif not repair.dry_run:
            if has_table:
                _list_published(repair, contents.waits_for)
            if contents.waits_for != row.waits_for:
                partitions.wait_for(row, contents.waits_for)


def _list_published(repair: Repair, manifest: str) -> None:
    """List a published manifest for its table, if its entry is lost: a version without tables has published it."""
    services = repair.services
    row = services.ledger.manifests.get(manifest)
    if row is not None and row.published is not None and not row.is_tabled:
        tables, generation = services.ledger.tables, row.published.generation
        tables.list_generation(row.partition.dataset, row.id, generation, services.clock())


def _is_closed(repair: Repair, partition: Partition) -> bool:
    """Whether each part that comes from now on touches the hours of its datasets, so that they are not announced."""
    services = repair.services
    return repair.dry_run or services.ledger.collections.close_hour(partition.stamp, services.clock())


def _count_share(repair: Repair, partition: Partition, share: float) -> None:
    """Count an hour of which the stream lane has put too much into the quarantine; the log names it."""
    if share > repair.services.settings.alarms.max_quarantined_share and not repair.dry_run:
        logger.warning("much of an hour is in the quarantine", partition=str(partition), share=round(share, 4))
        repair.count("aboveShare")


def _announce(repair: Repair, row: HourRow, state: HourState, counts: HourCounts | None = None) -> None:
    """Decide the next revision, unless one is decided and not announced; then announce it.

    A row that has changed since it was read is left to the next sweep.
    """
    services, kind = repair.services, KINDS[state]
    if repair.only_counts(kind, f"hour {row.partition}"):
        return
    if row.announced == row.revision:
        if not services.ledger.partitions.tell(state, row, counts or row.counts, services.clock()):
            return
        row = services.ledger.partitions.get(row.partition)
    announce(services, row)
    repair.count(kind)
