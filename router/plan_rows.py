"""Where a plan's manifests have got to, along the chain of those that were superseded."""

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


def rows_of(services: Services, manifests: Iterable[str]) -> list[ManifestRow]:
    """Consistent reads of manifests; a superseded one is replaced by those it went into, to the end of the chain.

    What was promoted is the stream lane's work, and no plan's.

    Raises
    ------
    InvalidDocumentError
        When the ledger does not know one of them.
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
                    raise InvalidDocumentError(f"the ledger has no manifest {manifest}: the plan names a foreign one")
                if row.lane == Lane.STREAM:
                    continue
                if row.state == State.SUPERSEDED:
                    successors.update(dict.fromkeys(row.superseded_by))
                else:
                    found.append(row)
            level = [manifest for manifest in successors if manifest not in seen]
    return found
