"""Rows of manifests by consistent reads, superseded ones followed to those that hold their files now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from lake.ledger import ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import Lane
from lake.successors import follow
from router.services import PARALLEL_REQUESTS, Services


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
