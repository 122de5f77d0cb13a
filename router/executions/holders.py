"""Manifests whose job run has ended or whose lease has expired are released."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lake.engines.job_runs import run_is_terminal
from lake.manifest import Lane

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from router.services import Services


def release_unheld(services: Services, rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    """Release RUNNING manifests whose lease has expired or whose owner run has ended; returns the released ones.

    ``rows`` are consistent reads of RUNNING manifests. Each owner run is looked up once, in the service that runs it.
    """
    ended_runs: dict[str, bool] = {}
    released = []
    for row in rows:
        reason = reason_to_release(services, row, ended_runs)
        if reason is not None and services.ledger.manifests.release(row, reason, services.clock()):
            released.append(row)
    return released


def reason_to_release(services: Services, row: ManifestRow, ended_runs: dict[str, bool]) -> str | None:
    """Why a RUNNING manifest has no holder any more; None: it has one.

    ``ended_runs`` keeps which runs have ended, so that each is looked up once.
    """
    if not row.has_live_lease(services.clock()):
        return f"the lease of run {row.owner} has expired"
    if row.owner is not None and _has_ended(services, row, ended_runs):
        return f"run {row.owner} has ended without finishing it"
    return None


def _has_ended(services: Services, row: ManifestRow, ended_runs: dict[str, bool]) -> bool:
    owner = str(row.owner)
    if owner not in ended_runs:
        ended_runs[owner] = run_is_terminal(services.job_clients, _jobs_of(services, row), owner)
    return ended_runs[owner]


def _jobs_of(services: Services, row: ManifestRow) -> list[str]:
    """The Glue jobs that the owner of a manifest can be a run of, the likeliest first."""
    if row.lane != Lane.STREAM:
        return [services.resources.batch_job]
    likeliest = services.settings.shards.of(row.id)
    # Another one may have taken it: the number of shards was different, or its pointer was in another inbox.
    names = sorted(services.settings.glue_shards, key=lambda shard: shard != likeliest)
    return [services.resources.stream_job_of(shard) for shard in names]
