"""The current rows of the manifests of a plan, after splits and promotions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.successors import follow

if TYPE_CHECKING:
    from router.services import Services


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
