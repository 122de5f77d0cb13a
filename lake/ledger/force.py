"""Reprocessing of a manifest: what ``force`` writes to its row, and how a refused write is settled. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.ledger.manifest_row import ManifestRow, State, open_attributes
from lake.manifest import Lane
from lake.time import iso_utc

if TYPE_CHECKING:
    from datetime import datetime

FORCEABLE = (State.DONE, State.FAILED)
"""States from which a manifest can be queued in its next generation."""
FORGOTTEN = ("document_key", "document_sha256", "exclusions", "reason", "finished_at")
"""Attributes of the generation that has ended: the next one reads every file again."""


def check_forceable(row: ManifestRow) -> None:
    """Raise ``InvalidInputError`` unless the manifest is DONE or FAILED."""
    if row.state not in FORCEABLE:
        raise InvalidInputError(
            f"manifest {row.id} is {row.state}: only DONE and FAILED ones can be forced; wait until it has ended"
        )


def forced_attributes(row: ManifestRow, request: str | None, now: datetime) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Attributes to assign, and those to remove; ``request`` None is a caller that does not repeat itself."""
    assign: dict[str, Any] = {
        "state": State.QUEUED,
        "lane": Lane.BATCH,
        "generation": row.generation + 1,
        "base_attempt": row.attempt,
        "lease_until": 0,
        "changed_at": iso_utc(now),
        "forced_at": iso_utc(now),
        **open_attributes(replace(row, lane=Lane.BATCH), State.QUEUED),
    }
    if request is None:
        return assign, (*FORGOTTEN, "request")
    return {**assign, "request": request}, FORGOTTEN


def is_forced_by(current: ManifestRow, row: ManifestRow, request: str | None) -> bool:
    """Whether the refused write was this request's own, repeated by the client: it has forced ``row`` already."""
    return request is not None and current.request == request and current.generation == row.generation + 1
