"""Conditions of the writes to a manifest's row: they keep out a process that acts on an outdated row."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import LeaseLostError
from lake.ledger.manifest_row import ManifestRow, State
from lake.ledger.table import Condition


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on a manifest, held by one attempt."""

    row: ManifestRow
    """As it was right after the claim."""
    owner: str
    """Job run id."""

    @property
    def fence(self) -> list[Condition]:
        """The manifest is RUNNING, and no other attempt has claimed it since."""
        return [
            Condition("state", "=", State.RUNNING),
            Condition("generation", "=", self.row.generation),
            Condition("attempt", "=", self.row.attempt),
        ]


def row_unchanged(row: ManifestRow) -> list[Condition]:
    """The row is as the caller read it: state, generation, attempt; the owner while RUNNING, the document while
    PUBLISHING."""
    conditions = [
        Condition("state", "=", row.state),
        Condition("generation", "=", row.generation),
        Condition("attempt", "=", row.attempt),
    ]
    if row.state == State.RUNNING:
        conditions.append(Condition("owner", "=", row.owner))
    if row.state == State.PUBLISHING and row.document is not None:
        conditions += [
            Condition("document_key", "=", row.document.key),
            Condition("document_sha256", "=", row.document.sha256),
        ]
    return conditions


def lease_lost(claim: Claim) -> LeaseLostError:
    """The error of a worker whose claim no longer holds."""
    return LeaseLostError(
        f"attempt {claim.row.attempt} of manifest {claim.row.id} lost its lease: "
        "another run has claimed it or may claim it; this attempt publishes nothing"
    )
