"""The current rows of the manifests of a plan, after merges, splits and promotions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError
from lake.ledger import State
from lake.ledger.table import MAX_BATCH_KEYS, batches_of
from lake.manifest import Lane

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lake.ledger import ManifestRow
    from router.services import Services

PARALLEL_READS = 16
"""Requests at a time."""
PAGE_ROWS = PARALLEL_READS * MAX_BATCH_KEYS
"""Maximum number of rows that are in memory at a time, whatever the size of the plan: each has about 3 KiB there."""


def current_row_pages(services: Services, manifests: Iterable[str]) -> Iterator[list[ManifestRow]]:
    """Rows by consistent reads, page by page; a superseded manifest is replaced by its successors, to the end of the
    chain.

    Manifests of the stream lane are left out: what was promoted belongs to no plan any more.

    Raises
    ------
    InvalidDocumentError
        The ledger does not know a manifest.
    """
    seen: set[str] = set()
    level = list(dict.fromkeys(manifests))
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        while level:
            seen.update(level)
            successors: dict[str, None] = {}
            for first in range(0, len(level), PAGE_ROWS):
                batches = batches_of(level[first : first + PAGE_ROWS])
                rows = [row for batch in pool.map(lambda ids: _read(services, ids), batches) for row in batch]
                for row in rows:
                    if row.state == State.SUPERSEDED and row.lane != Lane.STREAM:
                        successors.update(dict.fromkeys(row.superseded_by))
                yield [row for row in rows if row.state != State.SUPERSEDED and row.lane != Lane.STREAM]
            level = [manifest for manifest in successors if manifest not in seen]


def _read(services: Services, manifests: Sequence[str]) -> list[ManifestRow]:
    rows = []
    for manifest, row in zip(manifests, services.ledger.manifests.get_many(manifests), strict=True):
        if row is None:
            raise InvalidDocumentError(f"the ledger has no manifest {manifest}: the plan belongs to another deployment")
        rows.append(row)
    return rows
