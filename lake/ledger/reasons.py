"""The reason of an open manifest, recorded for people while its state stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger.fence import row_unchanged
from lake.ledger.manifest_row import manifest_row_key
from lake.ledger.table import RefusedError

if TYPE_CHECKING:
    from lake.ledger.manifest_row import ManifestRow
    from lake.ledger.table import LedgerTable


class Reasons:
    """Writes why a manifest waits."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def record(self, row: ManifestRow, reason: str) -> bool:
        """Change the reason of an open manifest and nothing else; False: the row has changed since it was read.

        A row that has this reason is left as it is.
        """
        if not row.open:
            return False
        if row.reason == reason:
            return True
        try:
            self._table.update(manifest_row_key(row.id), assign={"reason": reason}, conditions=row_unchanged(row))
        except RefusedError:
            return False
        return True
