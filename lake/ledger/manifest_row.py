"""The ledger row of a manifest: its state, and everything a fence compares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lake.ledger.table import Key
from lake.manifest import Lane, Manifest
from lake.partition import Partition
from lake.time import epoch_milliseconds

if TYPE_CHECKING:
    from datetime import datetime


class State(StrEnum):
    """States of a manifest."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    PUBLISHING = "PUBLISHING"
    DONE = "DONE"
    FAILED = "FAILED"
    SUPERSEDED = "SUPERSEDED"
    ABANDONED = "ABANDONED"


EARLIER_OWNERS = 10
"""So many a row remembers."""

OPEN_STATES = (State.QUEUED, State.RUNNING, State.PUBLISHING)
"""Not terminal: these rows, and only these, are in the index of open manifests."""


@dataclass(frozen=True, slots=True)
class Document:
    """A commit document: its key in the control bucket and the SHA-256 of its bytes."""

    key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Published:
    """What readers see: survives ``force`` and FAILED, changes only with the next DONE."""

    generation: int
    document: Document


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One manifest as the ledger has it."""

    id: str
    state: State
    lane: Lane
    partition: Partition
    created_at: str
    """ISO 8601, UTC."""
    bytes: int
    files: int
    generation: int = 1
    attempt: int = 0
    """Attempts begun so far, over all generations; only grows."""
    base_attempt: int = 0
    """``attempt`` when this generation was queued."""
    owner: str | None = None
    """Job run that holds, or last held, the lease."""
    earlier_owners: tuple[str, ...] = ()
    """Job runs of the attempts before, oldest first; of many only the last ``EARLIER_OWNERS``."""
    lease_until: int = 0
    """End of the lease in milliseconds since the epoch."""
    document: Document | None = None
    published: Published | None = None
    reason: str | None = None
    """Why it failed, was queued again or was superseded."""
    superseded_by: tuple[str, ...] = ()
    exclusions: str | None = None
    """Key of the document that names the files which cannot be read to their end, and why."""
    changed_at: str = ""
    """ISO 8601, UTC: last transition."""
    finished_at: str | None = None

    @property
    def tries(self) -> int:
        """Attempts begun in this generation."""
        return self.attempt - self.base_attempt

    def has_live_lease(self, now: datetime) -> bool:
        """RUNNING, and its holder may still renew or commit at ``now`` (aware)."""
        return self.state == State.RUNNING and self.lease_until > epoch_milliseconds(now)

    @property
    def open(self) -> bool:
        """Not terminal."""
        return self.state in OPEN_STATES


def manifest_row_key(manifest: str) -> Key:
    """Primary key of a manifest's row."""
    return Key(f"manifest#{manifest}", "manifest")


def open_key(lane: Lane, state: State) -> str:
    """Partition key of the index of open manifests; its sort key is the time of creation."""
    return f"{lane}#{state}"


INDEX_ATTRIBUTES = ("open", "open_order")
"""Without these a row is not in the index."""


def open_attributes(row: ManifestRow, state: State) -> dict[str, str]:
    """What puts the row of an open manifest into the index."""
    return {"open": open_key(row.lane, state), "open_order": f"{row.created_at}#{row.id}"}


def queued_row(manifest: Manifest) -> ManifestRow:
    """The first row of a fresh manifest."""
    return ManifestRow(
        id=manifest.id,
        state=State.QUEUED,
        lane=manifest.lane,
        partition=manifest.partition,
        created_at=manifest.created_at,
        bytes=manifest.bytes,
        files=len(manifest.files),
        changed_at=manifest.created_at,
    )


def queued_attributes(row: ManifestRow) -> dict[str, Any]:
    """The item of a fresh QUEUED row."""
    return {
        "id": row.id,
        "state": State.QUEUED,
        "lane": row.lane,
        "partition": str(row.partition),
        "created_at": row.created_at,
        "bytes": row.bytes,
        "files": row.files,
        "generation": row.generation,
        "attempt": row.attempt,
        "base_attempt": row.base_attempt,
        "changed_at": row.changed_at,
        **open_attributes(row, State.QUEUED),
    }


def row_of(item: dict[str, Any]) -> ManifestRow:
    """A row of a DynamoDB item."""
    document = Document(item["document_key"], item["document_sha256"]) if "document_key" in item else None
    published = None
    if "published_generation" in item:
        published = Published(item["published_generation"], Document(item["published_key"], item["published_sha256"]))
    return ManifestRow(
        id=item["id"],
        state=State(item["state"]),
        lane=Lane(item.get("lane", Lane.BATCH)),
        partition=Partition.parse(item.get("partition", "#0000-00-00T0")),
        created_at=item.get("created_at", ""),
        bytes=item.get("bytes", 0),
        files=item.get("files", 0),
        generation=item.get("generation", 0),
        attempt=item.get("attempt", 0),
        base_attempt=item.get("base_attempt", 0),
        owner=item.get("owner"),
        earlier_owners=tuple(item.get("earlier_owners", ())),
        lease_until=item.get("lease_until", 0),
        document=document,
        published=published,
        reason=item.get("reason"),
        superseded_by=tuple(item.get("superseded_by", ())),
        exclusions=item.get("exclusions"),
        changed_at=item.get("changed_at", ""),
        finished_at=item.get("finished_at"),
    )
