"""What waits for the night: read from the index, which is a hint; whatever depends on it is fenced by the ledger."""

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

PUBLISH_TIME = timedelta(minutes=3)
"""A manifest that publishes for longer is rolled forward by a run of the plan."""


def backlog(services: Services, selection: Selection, *, release: bool) -> list[ManifestRow]:
    """QUEUED manifests of the batch lane, and those that publish for too long; oldest first.

    With ``release``, manifests held by dead runs are put back to QUEUED first and belong to the answer.
    """
    queued = list(open_rows(services, Lane.BATCH, State.QUEUED, selection))
    if release:
        running = [
            services.ledger.manifests.get(row.id) for row in open_rows(services, Lane.BATCH, State.RUNNING, selection)
        ]
        dead = release_unheld(services, [row for row in running if row is not None and row.state == State.RUNNING])
        queued += standing(services, dead)
    oldest = services.clock() - PUBLISH_TIME
    publishing = [
        row
        for row in open_rows(services, Lane.BATCH, State.PUBLISHING, selection)
        if datetime.fromisoformat(row.changed_at) < oldest
    ]
    return list({row.id: row for row in (*queued, *publishing)}.values())


def standing(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """The same work by consistent reads: QUEUED manifests, and the QUEUED ones that superseded ones went into."""
    found: dict[str, ManifestRow] = {}
    todo, seen = [row.id for row in rows], set()
    while todo:
        manifest = todo.pop()
        if manifest in seen:
            continue
        seen.add(manifest)
        row = services.ledger.manifests.get(manifest)
        if row is None:
            continue
        if row.state == State.SUPERSEDED:
            todo += row.superseded_by
        elif row.state == State.QUEUED and row.lane == Lane.BATCH:
            found[row.id] = row
    return list(found.values())
