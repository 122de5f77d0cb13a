"""The backlog of the batch lane, read from the index: a hint, so all that is done with it is fenced by the ledger."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import Lane
from router.job_runs import release_unheld
from router.selection import open_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        running = [
            services.ledger.manifests.get(row.id) for row in open_rows(services, Lane.BATCH, State.RUNNING, selection)
        ]
        released = release_unheld(services, [row for row in running if row is not None and row.state == State.RUNNING])
        queued += queued_successors(services, released)
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
    remaining, seen = [row.id for row in rows], set()
    while remaining:
        manifest = remaining.pop()
        if manifest in seen:
            continue
        seen.add(manifest)
        row = services.ledger.manifests.get(manifest)
        if row is None:
            continue
        if row.state == State.SUPERSEDED:
            remaining += row.superseded_by
        elif row.state == State.QUEUED and row.lane == Lane.BATCH:
            found[row.id] = row
    return list(found.values())
