"""The current rows of the manifests of a plan, after merges, splits and promotions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError
from lake.ledger import State
from lake.manifest import Lane
from router.services import PARALLEL_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger import ManifestRow
    from router.services import Services


def current_rows(services: Services, manifests: Iterable[str]) -> list[ManifestRow]:
    """Rows by consistent reads; a superseded manifest is replaced by its successors, to the end of the chain.

    Manifests of the stream lane are left out: what was promoted belongs to no plan any more.

    Raises
    ------
    InvalidDocumentError
        The ledger does not know a manifest.
    """
    seen: set[str] = set()
    found = []
    level = list(dict.fromkeys(manifests))
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        while level:
            seen.update(level)
            successors: dict[str, None] = {}
            for manifest, row in zip(level, pool.map(services.ledger.manifests.get, level), strict=True):
                if row is None:
                    raise InvalidDocumentError(
                        f"the ledger has no manifest {manifest}: the plan belongs to another deployment"
                    )
                if row.lane == Lane.STREAM:
                    continue
                if row.state == State.SUPERSEDED:
                    successors.update(dict.fromkeys(row.superseded_by))
                else:
                    found.append(row)
            level = [manifest for manifest in successors if manifest not in seen]
    return found
