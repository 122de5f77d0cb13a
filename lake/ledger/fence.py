"""What the writes of a manifest's row compare."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import LeaseLostError
from lake.ledger.manifest_row import ManifestRow, State
from lake.ledger.table import Where


@dataclass(frozen=True, slots=True)
class Claim:
    """A held lease: the fence every later write of this attempt compares."""

    row: ManifestRow
    """As it stood right after the claim."""
    owner: str

    @property
    def fence(self) -> list[Where]:
        """RUNNING, and nobody has claimed it since."""
        return [
            Where("state", "=", State.RUNNING),
            Where("generation", "=", self.row.generation),
            Where("attempt", "=", self.row.attempt),
        ]


def same(row: ManifestRow) -> list[Where]:
    """The row is where the caller saw it: state, generation, attempt, and the document while PUBLISHING."""
    where = [
        Where("state", "=", row.state),
        Where("generation", "=", row.generation),
        Where("attempt", "=", row.attempt),
    ]
    if row.state == State.RUNNING:
        where.append(Where("owner", "=", row.owner))
    if row.state == State.PUBLISHING and row.document is not None:
        where += [
            Where("document_key", "=", row.document.key),
            Where("document_sha256", "=", row.document.sha256),
        ]
    return where


def lost(claim: Claim) -> LeaseLostError:
    """The error of a worker whose claim no longer holds."""
    return LeaseLostError(
        f"attempt {claim.row.attempt} of manifest {claim.row.id} lost its lease: "
        "another run has taken over or will; this one publishes nothing"
    )
