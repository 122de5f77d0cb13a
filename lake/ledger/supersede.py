"""The one transaction in which files change their manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lake.ledger.fence import same
from lake.ledger.manifest_row import (
    INDEX_ATTRIBUTES,
    ManifestRow,
    State,
    manifest_row_key,
    queued_attributes,
    queued_row,
)
from lake.ledger.table import Where, put_request, update_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.manifest import Manifest


def successor_row(sources: Sequence[ManifestRow], manifest: Manifest) -> ManifestRow:
    """The first row of a successor: it has all its tries, and still shows that its files have been tried before."""
    begun = max(row.attempt for row in sources)
    return replace(queued_row(manifest), attempt=begun, base_attempt=begun)


def supersede_actions(
    table: str, sources: Sequence[ManifestRow], successors: Sequence[Manifest], reason: str, changed_at: str
) -> list[dict[str, Any]]:
    """Sources SUPERSEDED where the caller saw them and nothing was published; successors QUEUED."""
    changes = {
        "state": State.SUPERSEDED,
        "superseded_by": [manifest.id for manifest in successors],
        "reason": reason,
        "changed_at": changed_at,
    }
    actions = []
    for row in sources:
        where = [*same(row), Where("published_generation", "missing")]
        request = update_request(table, manifest_row_key(row.id), changes, {}, INDEX_ATTRIBUTES, where)
        actions.append({"Update": request})
    for manifest in successors:
        attributes = queued_attributes(successor_row(sources, manifest))
        request = put_request(table, manifest_row_key(manifest.id), attributes, [Where("pk", "missing")])
        actions.append({"Put": request})
    return actions
