"""The backlog of the batch lane, read from the index: a hint, so all that is done with it is fenced by the ledger."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.ledger.batch_reads import batches_of
from lake.manifest import Lane
from router.job_runs import release_unheld
from router.selection import open_rows
from router.services import PARALLEL_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lake.ledger import ManifestRow
    from router.selection import Selection
    from router.services import Services

REPLAN_PUBLISHING_AFTER = timedelta(minutes=3)
"""A manifest that has been PUBLISHING for longer is planned, so that a run rolls it forward.

Much longer than a publish takes; a publisher that is still alive does no harm, because publishing is idempotent.
"""


def backlog(services: Services, selection: Selection, *, release: bool) -> list[ManifestRow]:
    """QUEUED manifests of the batch lane and those PUBLISHING for too long.

    With ``release``, manifests whose run has ended or whose lease has expired are put back to QUEUED and included.
    """
    queued = list(open_rows(services, Lane.BATCH, State.QUEUED, selection))
    if release:
        running = _read(services, [row.id for row in open_rows(services, Lane.BATCH, State.RUNNING, selection)])
        queued += queued_successors(services, _release(services, running))
    limit = services.clock() - REPLAN_PUBLISHING_AFTER
    publishing = [
        row
        for row in open_rows(services, Lane.BATCH, State.PUBLISHING, selection)
        if datetime.fromisoformat(row.changed_at) < limit
    ]
    return list({row.id: row for row in (*queued, *publishing)}.values())


def queued_successors(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """The QUEUED manifests of the batch lane that hold the files of ``rows`` now, by consistent reads.

    A superseded manifest is followed to its successors.
    """
    found: dict[str, ManifestRow] = {}
    seen: set[str] = set()
    level = [row.id for row in rows]
    while level:
        seen.update(level)
        successors: dict[str, None] = {}
        for row in _read(services, level):
            if row.state == State.SUPERSEDED:
                successors.update(dict.fromkeys(row.superseded_by))
            elif row.state == State.QUEUED and row.lane == Lane.BATCH:
                found[row.id] = row
        level = [manifest for manifest in successors if manifest not in seen]
    return list(found.values())


def _read(services: Services, manifests: Sequence[str]) -> list[ManifestRow]:
    """The rows that exist, by consistent reads of many at a time, side by side."""
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        read = list(pool.map(services.ledger.manifests.get_many, batches_of(manifests)))
    return [row for batch in read for row in batch if row is not None]


def _release(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """Release what no run holds, the manifests of different runs side by side."""
    held: defaultdict[str | None, list[ManifestRow]] = defaultdict(list)
    for row in rows:
        if row.state == State.RUNNING:
            held[row.owner].append(row)
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        released = list(pool.map(lambda owned: release_unheld(services, owned), held.values()))
    return [row for owned in released for row in owned]
