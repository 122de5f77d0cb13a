"""The backlog of the batch lane, read from the index: a hint, so all that is done with it is fenced by the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from lake.ledger import ManifestRow, State
from lake.ledger.manifest_row import queued_row
from lake.manifest import Lane
from router.collect.divide import divide_selected, draft_selected
from router.executions.run_status import queued_successors, read_rows, release_unheld
from router.requests.selection import Selection, open_rows
from router.services import PARALLEL_REQUESTS, Services

REPLAN_PUBLISHING_AFTER = timedelta(minutes=3)
"""A manifest that has been PUBLISHING for longer is planned, so that a run rolls it forward.

Much longer than a publish takes; a publisher that is still alive does no harm, because publishing is idempotent.
"""


MAX_MANIFESTS = 1_000_000
"""Manifests of a plan. It needs 757 B and 0.4 ms for each, so this is about half of the function's memory and time."""


class Backlog(NamedTuple):
    """What an execution can convert."""

    rows: list[ManifestRow]
    left_from: str
    """ISO 8601, UTC: manifests that were created then and later are left to the next plan. Empty: none is left."""


def backlog(services: Services, selection: Selection, *, release: bool) -> Backlog:
    """The ``MAX_MANIFESTS`` oldest QUEUED manifests of the batch lane, and those PUBLISHING for too long.

    With ``release``, the collections of the selected hours are divided, and manifests whose run has ended or whose
    lease has expired are put back to QUEUED; both are included. Without it, what collections would become is included.
    """
    divided = (
        divide_selected(services, selection)
        if release
        else [queued_row(manifest) for manifest in draft_selected(services, selection)]
    )
    oldest_first = iter(open_rows(services, Lane.BATCH, State.QUEUED, selection))
    queued = list(islice(oldest_first, MAX_MANIFESTS))
    first_left = next(oldest_first, None)
    if release:
        running = read_rows(services, [row.id for row in open_rows(services, Lane.BATCH, State.RUNNING, selection)])
        queued += queued_successors(services, [row.id for row in _release(services, running)])
    limit = services.clock() - REPLAN_PUBLISHING_AFTER
    publishing = [
        row
        for row in open_rows(services, Lane.BATCH, State.PUBLISHING, selection)
        if datetime.fromisoformat(row.changed_at) < limit
    ]
    rows = list({row.id: row for row in (*divided, *queued, *publishing)}.values())
    return Backlog(rows, "" if first_left is None else first_left.created_at)


def _release(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """Release what no run holds, the manifests of different runs side by side."""
    held: defaultdict[str | None, list[ManifestRow]] = defaultdict(list)
    for row in rows:
        if row.state == State.RUNNING:
            held[row.owner].append(row)
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        released = list(pool.map(lambda owned: release_unheld(services, owned), held.values()))
    return [row for owned in released for row in owned]
