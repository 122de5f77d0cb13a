"""The one transaction that moves files from their manifests to others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lake.ledger.fence import row_unchanged
from lake.ledger.manifest_row import (
    INDEX_ATTRIBUTES,
    ManifestRow,
    State,
    manifest_row_key,
    queued_attributes,
    queued_row,
)
from lake.ledger.table import Condition, put_request, update_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.manifest import Manifest


def successor_row(sources: Sequence[ManifestRow], manifest: Manifest) -> ManifestRow:
    """The first row of a successor: all attempts are left to it, and its count shows that its files were tried."""
    attempts = max(row.attempt for row in sources)
    return replace(queued_row(manifest), attempt=attempts, base_attempt=attempts)


def supersede_actions(
    table: str, sources: Sequence[ManifestRow], successors: Sequence[Manifest], reason: str, changed_at: str
) -> list[dict[str, Any]]:
    """Actions of the transaction: sources, unchanged and never published, become SUPERSEDED; successors QUEUED.

    ``changed_at`` is ISO 8601, UTC.
    """
    changes = {
        "state": State.SUPERSEDED,
        "superseded_by": [manifest.id for manifest in successors],
        "reason": reason,
        "changed_at": changed_at,
    }
    actions = []
    for row in sources:
        conditions = [*row_unchanged(row), Condition("published_generation", "missing")]
        request = update_request(table, manifest_row_key(row.id), changes, {}, INDEX_ATTRIBUTES, conditions)
        actions.append({"Update": request})
    for manifest in successors:
        attributes = queued_attributes(successor_row(sources, manifest))
        request = put_request(table, manifest_row_key(manifest.id), attributes, [Condition("pk", "missing")])
        actions.append({"Put": request})
    return actions
