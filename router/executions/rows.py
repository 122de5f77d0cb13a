"""Current rows of manifests: those of a plan after splits and promotions, and those that no live run holds any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from lake.engines.job_runs import run_is_terminal
from lake.errors import InvalidDocumentError
from lake.ledger import ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import Lane
from lake.successors import follow
from router.services import PARALLEL_REQUESTS, Services


def current_row_pages(services: Services, manifests: Iterable[str]) -> Iterator[list[ManifestRow]]:
    """Rows by consistent reads, page by page; a superseded manifest is replaced by its successors.

    Manifests of the stream lane are left out: what was promoted belongs to no plan any more.

    Raises
    ------
    InvalidDocumentError
        The ledger does not know a manifest.
    """
    for page in follow(services.ledger, manifests, follows=_is_superseded):
        rows = []
        for manifest, row in page:
            if row is None:
                raise InvalidDocumentError(
                    f"the ledger has no manifest {manifest}: the plan belongs to another deployment"
                )
            if row.state != State.SUPERSEDED and row.lane != Lane.STREAM:
                rows.append(row)
        yield rows


def _is_superseded(row: ManifestRow) -> bool:
    return row.state == State.SUPERSEDED and row.lane != Lane.STREAM


def queued_successors(services: Services, manifests: Iterable[str]) -> list[ManifestRow]:
    """The QUEUED manifests of the batch lane that hold the files of ``manifests`` now, by consistent reads.

    A superseded manifest is followed to its successors.
    """
    pages = follow(services.ledger, manifests)
    current = (row for page in pages for _, row in page if row is not None)
    return [row for row in current if row.state == State.QUEUED and row.lane == Lane.BATCH]


def read_rows(services: Services, manifests: Sequence[str]) -> list[ManifestRow]:
    """The rows that exist, by consistent reads of many at a time, side by side."""
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        read = list(pool.map(services.ledger.manifests.get_many, batches_of(manifests)))
    return [row for batch in read for row in batch if row is not None]


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
