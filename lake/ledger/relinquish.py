"""The one change of a manifest that stays DONE: it leaves files that it could not read to other manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger.fence import row_unchanged
from lake.ledger.manifest_row import State, manifest_row_key
from lake.ledger.table import Condition, RefusedError

if TYPE_CHECKING:
    from lake.ledger.manifest_row import ManifestRow
    from lake.ledger.table import LedgerTable


def relinquish(table: LedgerTable, row: ManifestRow, document: str) -> bool:
    """Name the list of all files that the DONE manifest relinquishes; False: the row has changed since it was read.

    ``document`` is the key of an exclusions document, which holds the files of ``row.relinquished`` as well. The
    attribute outlives every later generation. A generation that begins first makes the update fail.
    """
    if row.state != State.DONE:
        return False
    known = Condition("relinquished", "missing" if row.relinquished is None else "=", row.relinquished)
    try:
        table.update(
            manifest_row_key(row.id), assign={"relinquished": document}, conditions=[*row_unchanged(row), known]
        )
    except RefusedError:
        current = table.get(manifest_row_key(row.id))
        return current is not None and current.get("relinquished") == document
    return True
