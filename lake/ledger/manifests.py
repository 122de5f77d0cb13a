"""Transitions of a manifest: one function each, one conditional update each.

The caller's clock is an argument (aware UTC datetimes); nothing here reads the time. A refused update is always settled
by a consistent read, because an update may have been applied and its answer lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.ledger.fence import Claim, lost, same
from lake.ledger.manifest_row import (
    EARLIER_OWNERS,
    INDEX_ATTRIBUTES,
    Document,
    ManifestRow,
    Published,
    State,
    manifest_row_key,
    open_attributes,
    open_key,
    queued_attributes,
    queued_row,
    row_of,
)
from lake.ledger.supersede import supersede_actions
from lake.ledger.table import RefusedError, Where
from lake.manifest import Lane
from lake.time import epoch_milliseconds, iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from lake.ledger.table import Table
    from lake.manifest import Manifest

HOLDABLE = (State.QUEUED, State.RUNNING)
"""States from which a manifest can be claimed or replaced."""


class Manifests:
    """Reads and moves manifest rows."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, manifest: str) -> ManifestRow | None:
        """Strongly consistent."""
        item = self._table.get(manifest_row_key(manifest))
        return None if item is None else row_of(item)

    def open(self, lane: Lane, state: State) -> Iterator[ManifestRow]:
        """Open manifests, oldest first, from the index: a hint that the row itself has to confirm."""
        return (row_of(item) for item in self._table.query(open_key(lane, state), index=True))

    def enqueue(self, manifest: Manifest) -> State:
        """Make the manifest exist: QUEUED on success; ABANDONED when somebody gave the invocation up for dead."""
        row = queued_row(manifest)
        try:
            self._table.put(manifest_row_key(row.id), queued_attributes(row), [Where("pk", "missing")])
        except RefusedError:
            return self._standing(row.id).state
        return State.QUEUED

    def abandon(self, manifest: str, now: datetime) -> ManifestRow:
        """Fence off an owner that has no row, so that its arrivals can be adopted; the row that stands."""
        item = {"id": manifest, "state": State.ABANDONED, "changed_at": iso_utc(now)}
        try:
            self._table.put(manifest_row_key(manifest), item, [Where("pk", "missing")])
        except RefusedError:
            return self._standing(manifest)
        return row_of(item)

    def claim(self, row: ManifestRow, owner: str, now: datetime, lease: timedelta) -> Claim | None:
        """QUEUED, or RUNNING with an expired lease, to RUNNING with the next attempt; None: read the row again.

        ``row`` is a fresh, consistent read. Take-over from a terminal owner run goes through ``release`` first.
        """
        if row.state not in HOLDABLE or row.has_live_lease(now):
            return None
        earlier = (*row.earlier_owners, row.owner)[-EARLIER_OWNERS:] if row.owner else ()
        changes: dict[str, Any] = {
            "state": State.RUNNING,
            "attempt": row.attempt + 1,
            "owner": owner,
            "lease_until": epoch_milliseconds(now + lease),
            "changed_at": iso_utc(now),
            **open_attributes(row, State.RUNNING),
        }
        if earlier:
            changes["earlier_owners"] = list(earlier)
        claimed = replace(
            row,
            state=State.RUNNING,
            attempt=row.attempt + 1,
            owner=owner,
            earlier_owners=earlier,
            lease_until=epoch_milliseconds(now + lease),
            changed_at=iso_utc(now),
        )
        try:
            self._table.update(manifest_row_key(row.id), assign=changes, where=same(row))
        except RefusedError:
            standing = self._standing(row.id)
            if (standing.state, standing.attempt, standing.owner, standing.generation) != (
                State.RUNNING,
                claimed.attempt,
                owner,
                row.generation,
            ):
                return None
        return Claim(claimed, owner)

    def renew(self, claim: Claim, now: datetime, lease: timedelta) -> None:
        """Extend a live lease. An expired one is never renewed: raises ``LeaseLostError``."""
        where = [*claim.fence, Where("lease_until", ">", epoch_milliseconds(now))]
        try:
            self._table.update(
                manifest_row_key(claim.row.id), assign={"lease_until": epoch_milliseconds(now + lease)}, where=where
            )
        except RefusedError as error:
            raise lost(claim) from error

    def release(self, row: ManifestRow, reason: str, now: datetime, exclusions: str | None = None) -> bool:
        """RUNNING back to QUEUED: its holder gives up, its lease has expired, or its owner run is terminal.

        False when the row has moved on in the meantime.
        """
        if row.state != State.RUNNING:
            return False
        changes: dict[str, Any] = {
            "state": State.QUEUED,
            "reason": reason,
            "lease_until": 0,
            "changed_at": iso_utc(now),
            **open_attributes(row, State.QUEUED),
        }
        if exclusions is not None:
            changes["exclusions"] = exclusions
        try:
            self._table.update(manifest_row_key(row.id), assign=changes, where=same(row))
        except RefusedError:
            standing = self._standing(row.id)
            return standing.state == State.QUEUED and standing.attempt == row.attempt
        return True

    def commit(self, claim: Claim, document: Document, now: datetime) -> None:
        """RUNNING to PUBLISHING: the commit point. Raises ``LeaseLostError`` when the claim no longer holds."""
        changes = {
            "state": State.PUBLISHING,
            "document_key": document.key,
            "document_sha256": document.sha256,
            "changed_at": iso_utc(now),
            **open_attributes(claim.row, State.PUBLISHING),
        }
        where = [*claim.fence, Where("lease_until", ">", epoch_milliseconds(now))]
        try:
            self._table.update(manifest_row_key(claim.row.id), assign=changes, where=where)
        except RefusedError as error:
            standing = self._standing(claim.row.id)
            published = standing.published
            if standing.document != document and (published is None or published.document != document):
                raise lost(claim) from error

    def finish(self, row: ManifestRow, now: datetime) -> bool:
        """PUBLISHING to DONE, and ``published`` names this generation; False when the row has moved on."""
        if row.state != State.PUBLISHING or row.document is None:
            return False
        changes = {
            "state": State.DONE,
            "published_generation": row.generation,
            "published_key": row.document.key,
            "published_sha256": row.document.sha256,
            "changed_at": iso_utc(now),
            "finished_at": iso_utc(now),
        }
        return self._end(row, changes, ("reason",), State.DONE)

    def fail(self, row: ManifestRow, reason: str, now: datetime) -> bool:
        """QUEUED, RUNNING or PUBLISHING to FAILED; what was published stays published."""
        if not row.open:
            return False
        changes = {"state": State.FAILED, "reason": reason, "changed_at": iso_utc(now), "finished_at": iso_utc(now)}
        return self._end(row, changes, (), State.FAILED)

    def force(self, row: ManifestRow, now: datetime) -> bool:
        """Reprocess: from DONE or FAILED back to QUEUED in the batch lane, with the next generation."""
        if row.state not in (State.DONE, State.FAILED):
            raise InvalidInputError(
                f"manifest {row.id} is {row.state}: only DONE and FAILED ones can be forced; wait until it has ended"
            )
        changes = {
            "state": State.QUEUED,
            "lane": Lane.BATCH,
            "generation": row.generation + 1,
            "base_attempt": row.attempt,
            "lease_until": 0,
            "changed_at": iso_utc(now),
            **open_attributes(replace(row, lane=Lane.BATCH), State.QUEUED),
        }
        try:
            self._table.update(
                manifest_row_key(row.id),
                assign=changes,
                remove=("document_key", "document_sha256", "exclusions", "reason", "finished_at"),
                where=same(row),
            )
        except RefusedError:
            return False
        return True

    def supersede(
        self, sources: Sequence[ManifestRow], successors: Sequence[Manifest], reason: str, now: datetime
    ) -> bool:
        """Replace manifests that have published nothing by others, in one transaction; False: a source moved on.

        The successors' documents are on S3 already. Allowed from QUEUED, and from RUNNING by its holder, whose row
        is the fence.
        """
        if not all(row.state in HOLDABLE for row in sources):
            return False
        into = [manifest.id for manifest in successors]
        actions = supersede_actions(self._table.name, sources, successors, reason, iso_utc(now))
        try:
            self._table.transact(actions)
        except RefusedError:
            standing = self._standing(sources[0].id)
            return standing.state == State.SUPERSEDED and list(standing.superseded_by) == into
        return True

    def _end(self, row: ManifestRow, changes: dict[str, Any], remove: Sequence[str], state: State) -> bool:
        try:
            self._table.update(
                manifest_row_key(row.id), assign=changes, remove=(*INDEX_ATTRIBUTES, *remove), where=same(row)
            )
        except RefusedError:
            standing = self._standing(row.id)
            return standing.state == state and standing.document == row.document
        return True

    def _standing(self, manifest: str) -> ManifestRow:
        row = self.get(manifest)
        if row is None:
            raise InvalidInputError(f"the ledger has no manifest {manifest}: rows are never deleted, check its id")
        return row


__all__ = ["Claim", "Document", "ManifestRow", "Manifests", "Published", "State"]
