"""Whether the job run that owns a manifest is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.job_runs import run_is_terminal
from lake.manifest import Lane

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger import ManifestRow
    from router.services import Services


def release_dead(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """Put RUNNING manifests back to QUEUED whose lease has expired or whose owner run is over.

    ``rows`` are consistent reads of RUNNING manifests; returns those that are no longer held by a live run.
    """
    over: dict[str, bool] = {}
    released = []
    for row in rows:
        now = services.clock()
        if not row.has_live_lease(now):
            reason = f"the lease of run {row.owner} has expired"
        elif row.owner is not None and _is_over(services, row, over):
            reason = f"run {row.owner} has ended without finishing it"
        else:
            continue
        if services.ledger.manifests.release(row, reason, now):
            released.append(row)
    return released


def _is_over(services: Services, row: ManifestRow, over: dict[str, bool]) -> bool:
    owner = str(row.owner)
    if owner not in over:
        job = services.resources.stream_job if row.lane == Lane.STREAM else services.resources.batch_job
        over[owner] = run_is_terminal(services.glue, [job], owner)
    return over[owner]
