"""The transitions of a manifest, each by one method and one conditional write. Nothing else changes its row.

The caller passes the time (aware, UTC). A consistent read always resolves a refused write, because an answer can be
lost and the client can repeat the write.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lake.documents import encode
from lake.errors import InvalidInputError, LeaseLostError, TerminalError
from lake.ledger.hours import deletion_action, listing_actions
from lake.ledger.manifest_row import (
    INDEX_ATTRIBUTES,
    MAX_EARLIER_OWNERS,
    CommitReference,
    ManifestRow,
    Published,
    PublishedTotals,
    State,
    Tabled,
    abandoned_row,
    manifest_row_key,
    open_attributes,
    open_key,
    row_attributes,
    row_of,
)
from lake.ledger.table import MAX_TRANSACTION_ACTIONS, Action, Condition, Key, Rows, put_action, same, update_action
from lake.manifest import Lane
from lake.time import epoch_milliseconds, iso_utc

CLAIMABLE = (State.QUEUED, State.RUNNING)
"""States from which a manifest can be claimed or superseded."""
FORCEABLE = (State.DONE, State.FAILED)
"""States from which a manifest can be queued in its next generation."""
MAX_LISTED = MAX_TRANSACTION_ACTIONS // 3
"""Manifests that one transaction can queue: each has a row, an entry in the list of its hour, and at most one hour."""
FORGOTTEN = ("document", "exclusions", "reason", "finished_at")
"""Attributes of the ended generation that are removed: the next one reads every file again."""


class Failure(StrEnum):
    FAILED = State.FAILED.value
    """The whole manifest failed."""
    UNREADABLE = "UNREADABLE"
    """Files of a DONE manifest could not be read."""


OnDamage = Callable[[TerminalError], object]
"""Called with the error of each damaged row, which is then skipped."""


def raise_damage(error: TerminalError) -> None:
    raise error


def _read(item: dict[str, Any], on_damage: OnDamage) -> ManifestRow | None:
    try:
        return row_of(item)
    except TerminalError as error:
        on_damage(error)
        return None


class Manifests(Rows):
    def get(self, manifest: str) -> ManifestRow | None:
        """The row by a strongly consistent read; None if it does not exist."""
        item = self._table.get(manifest_row_key(manifest))
        return None if item is None else row_of(item)

    def get_many(self, manifests: Sequence[str], on_damage: OnDamage = raise_damage) -> list[ManifestRow | None]:
        """The rows of at most ``MAX_BATCH_KEYS`` different manifests, in their order, by one consistent read."""
        items = self._table.get_many([manifest_row_key(manifest) for manifest in manifests])
        return [None if item is None else _read(item, on_damage) for item in items]

    def open(self, lane: Lane, state: State | Failure, on_damage: OnDamage = raise_damage) -> Iterator[ManifestRow]:
        """Manifests in this open state or with this failure, oldest first, from the index: a hint, which a consistent
        read must confirm. A failure leaves the index when the manifest is converted again with every file."""
        rows = (_read(item, on_damage) for item in self._table.query(open_key(lane, state), index=True))
        return (row for row in rows if row is not None)

    def enqueue(self, row: ManifestRow) -> State:
        """Create the first row of a manifest. Returns QUEUED, or the state of a row that exists already.

        ABANDONED means that another process presumed the caller dead: the manifest must not be used.
        """
        return State.QUEUED if self._table.put(*_first_row(row)) else self.current(row.id).state

    def enqueue_listed(self, rows: Sequence[ManifestRow], now: datetime) -> bool:
        """List manifests, touch their hours and create their first rows, in one transaction.

        At most ``MAX_LISTED`` rows. False: one of the rows exists already, and nothing was written.
        """
        puts = [put_action(*_first_row(row)) for row in rows]
        return self._table.transact([*listing_actions(rows, now), *puts])

    def abandon(self, manifest: str, now: datetime) -> ManifestRow:
        """Fence off a manifest without a row, so that its arrivals can be adopted. Returns the current row."""
        row = abandoned_row(manifest, now)
        return row if self._table.put(*_first_row(row)) else self.current(manifest)

    def claim(
        self, row: ManifestRow, owner: str, now: datetime, lease: timedelta, nonce: str = ""
    ) -> ManifestRow | None:
        """QUEUED, or RUNNING with an expired lease, to RUNNING with the next attempt. Returns the row after the claim.

        Returns None if ``row``, which was read recently, has changed: read it again. ``nonce`` is unique to this claim;
        an empty one is replaced by a random one. If a run ended before its lease, call ``release`` before this.
        """
        if row.state not in CLAIMABLE or row.has_live_lease(now):
            return None
        claimed = replace(
            row,
            state=State.RUNNING,
            attempt=row.attempt + 1,
            owner=owner,
            claim_nonce=nonce or secrets.token_hex(8),
            earlier_owners=(*row.earlier_owners, row.owner)[-MAX_EARLIER_OWNERS:] if row.owner else (),
            lease_until=epoch_milliseconds(now + lease),
            changed_at=iso_utc(now),
        )
        names = ("attempt", "owner", "claim_nonce", "earlier_owners", "lease_until")
        changes = {name: encode(getattr(claimed, name)) for name in names}
        current = self._update(row, _opening_changes(row, claimed.state, now, **changes))
        if current and (current.state, current.claim_nonce) != (State.RUNNING, claimed.claim_nonce):
            return None
        return claimed

    def renew(self, claim: ManifestRow, now: datetime, lease: timedelta) -> None:
        """Extend a live lease to ``now + lease``. Raises ``LeaseLostError``, also if the lease has expired."""
        until = {"lease_until": epoch_milliseconds(now + lease)}
        if not self._table.update(manifest_row_key(claim.id), assign=until, conditions=still_held(claim, now)):
            raise lease_lost(claim)

    def release(
        self, row: ManifestRow, reason: str, now: datetime, exclusions: str | None = None, *, counted: bool = True
    ) -> bool:
        """RUNNING to QUEUED, if the holder stops, its lease expired or its run ended. False: the row has changed.

        ``exclusions`` is the key of an exclusions document. An attempt that is not ``counted`` uses up no try.
        """
        if row.state != State.RUNNING:
            return False
        changes = _opening_changes(row, State.QUEUED, now, reason=reason, lease_until=0)
        if exclusions is not None:
            changes["exclusions"] = exclusions
        if not counted:
            changes["base_attempt"] = row.base_attempt + 1
        current = self._update(row, changes)
        return current is None or (current.state == State.QUEUED and current.attempt == row.attempt)

    def commit(self, claim: ManifestRow, document: CommitReference, now: datetime) -> ManifestRow:
        """RUNNING to PUBLISHING, which is the commit point; removes the reason of earlier attempts.

        Returns the row after it. Raises ``LeaseLostError`` if the claim no longer holds.
        """
        changes = _opening_changes(claim, State.PUBLISHING, now, document=encode(document))
        key, conditions = manifest_row_key(claim.id), still_held(claim, now)
        if not self._table.update(key, assign=changes, remove=["reason"], conditions=conditions):
            current = self.current(claim.id)
            published = current.published
            if current.document != document and (published is None or published.document != document):
                raise lease_lost(claim)
        return replace(claim, state=State.PUBLISHING, document=document, changed_at=iso_utc(now), reason=None)

    def finish(self, row: ManifestRow, totals: PublishedTotals, now: datetime) -> bool:
        """PUBLISHING to DONE; ``published`` names this generation. False: the row has changed.

        In the same transaction, the deletion of the replaced objects becomes due.
        """
        if row.state != State.PUBLISHING or row.document is None:
            return False
        changes = {"state": State.DONE, "published": encode(Published(row.generation, row.document, totals))}
        listed, unlisted = finished_attributes(row, totals)
        return self._close(row, {**changes, **listed}, (*unlisted, "reason"), now)

    def keep_published(self, row: ManifestRow, reason: str, now: datetime) -> bool:
        """QUEUED to DONE with the published generation, if no attempt can add anything. False: the row has changed."""
        if row.state != State.QUEUED or row.published is None:
            return False
        listed, unlisted = finished_attributes(row, row.published.totals)
        return self._close(row, {"state": State.DONE, "reason": reason, **listed}, (*unlisted, "exclusions"), now)

    def fail(self, row: ManifestRow, reason: str, now: datetime) -> bool:
        """QUEUED, RUNNING or PUBLISHING to FAILED; a published generation stays published. False: the row has changed.

        If it was PUBLISHING, some objects may be visible; in the same transaction, their deletion becomes due.
        """
        if not row.open:
            return False
        return self._close(
            row, {"state": State.FAILED, "reason": reason, **open_attributes(row, Failure.FAILED)}, (), now
        )

    def force(self, row: ManifestRow, now: datetime, request: str) -> bool:
        """Reprocess: DONE or FAILED to QUEUED in the batch lane, with the next generation. False: the row has changed.

        ``request`` is the id of the person's request. The row keeps it, so that the request can be repeated. Raises
        ``InvalidInputError`` if the manifest is in another state.
        """
        if row.state not in FORCEABLE:
            raise InvalidInputError(
                f"manifest {row.id} is {row.state}: only DONE and FAILED ones can be reprocessed; wait until it ends"
            )
        changes = _opening_changes(
            replace(row, lane=Lane.BATCH),
            State.QUEUED,
            now,
            lane=Lane.BATCH,
            generation=row.generation + 1,
            base_attempt=row.attempt,
            lease_until=0,
            forced_at=iso_utc(now),
            request=request,
        )
        current = self._update(row, changes, FORGOTTEN)
        # The client may have repeated this request's own write.
        return current is None or (current.request == request and current.generation == row.generation + 1)

    def supersede(self, row: ManifestRow, successors: Sequence[ManifestRow], reason: str, now: datetime) -> bool:
        """Replace a manifest that has published nothing by others, in one transaction. False: the row has changed.

        ``row`` is the fence; it may be QUEUED, or RUNNING if the caller holds it. ``successors`` are the first rows of
        manifests whose documents are already on S3; there must be fewer than a transaction can have actions.
        """
        if row.state not in CLAIMABLE:
            return False
        ids = [successor.id for successor in successors]
        changes = {
            "state": State.SUPERSEDED,
            "superseded_by": ids,
            "reason": reason,
            "changed_at": iso_utc(now),
        }
        conditions = [*row_unchanged(row), Condition("published", "missing")]
        key = manifest_row_key(row.id)
        superseded = update_action(key, changes, remove=INDEX_ATTRIBUTES, conditions=conditions)
        firsts = [put_action(*_first_row(successor_row(row, item))) for item in successors]
        current = self._transact(row, [superseded, *firsts])
        return current is None or (current.state == State.SUPERSEDED and list(current.superseded_by) == ids)

    def record_reason(self, row: ManifestRow, reason: str) -> bool:
        """Change only the reason of an open manifest, which is for people. False: the row has changed.

        It writes nothing if the row has this reason already.
        """
        return row.open and (row.reason == reason or self._update(row, {"reason": reason}) is None)

    def mark_tabled(self, row: ManifestRow, tabled: Tabled) -> None:
        """Record what the dataset's table shows, in any state of the row. Idempotent, by any caller.

        Marks only advance: nothing happens unless the batch is higher than the batch in the row.
        """
        while row.tabled is None or row.tabled.batch < tabled.batch:
            key, seen = manifest_row_key(row.id), same(tabled=encode(row.tabled))
            if self._table.update(key, assign={"tabled": encode(tabled)}, conditions=seen):
                return
            row = self.current(row.id)

    def _update(self, row: ManifestRow, changes: dict[str, Any], remove: Sequence[str] = ()) -> ManifestRow | None:
        """Update the row. None: the update was applied; otherwise the current row, which has changed since ``row``."""
        key, unchanged = manifest_row_key(row.id), row_unchanged(row)
        is_applied = self._table.update(key, assign=changes, remove=remove, conditions=unchanged)
        return None if is_applied else self.current(row.id)

    def _transact(self, row: ManifestRow, actions: Sequence[Action]) -> ManifestRow | None:
        return None if self._table.transact(actions) else self.current(row.id)

    def _close(self, row: ManifestRow, changes: dict[str, Any], remove: Sequence[str], now: datetime) -> bool:
        changes = {**changes, "changed_at": iso_utc(now), "finished_at": iso_utc(now)}
        is_first_publish = changes["state"] == State.DONE and row.generation == 1
        may_leave_objects = row.state == State.PUBLISHING and not is_first_publish
        if may_leave_objects:
            end = update_action(manifest_row_key(row.id), changes, remove=remove, conditions=row_unchanged(row))
            current = self._transact(row, [end, deletion_action(row, now)])
        else:
            current = self._update(row, changes, remove)
        return current is None or (current.state == changes["state"] and current.document == row.document)

    def current(self, manifest: str) -> ManifestRow:
        if (row := self.get(manifest)) is None:
            raise InvalidInputError(f"the ledger has no manifest {manifest}: rows are never deleted, check its id")
        return row


def _opening_changes(row: ManifestRow, state: State, now: datetime, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """The attributes of a transition to an open state: the state, its time, its entry in the index, and ``changes``."""
    return {"state": state, "changed_at": iso_utc(now), **open_attributes(row, state), **changes}


def _first_row(row: ManifestRow) -> tuple[Key, dict[str, Any]]:
    return manifest_row_key(row.id), row_attributes(row)


def row_unchanged(row: ManifestRow) -> list[Condition]:
    """Conditions that the row is as the caller read it: state, generation and attempt; the owner while RUNNING, the
    document while PUBLISHING."""
    conditions = same(state=row.state, generation=row.generation, attempt=row.attempt)
    if row.state == State.RUNNING:
        conditions += same(owner=row.owner)
    if row.state == State.PUBLISHING:
        conditions += same(document=encode(row.document))
    return conditions


def still_held(claim: ManifestRow, now: datetime) -> list[Condition]:
    """Conditions that no other attempt has claimed the manifest since, and that the lease is live at ``now``."""
    return [*row_unchanged(claim), Condition("lease_until", ">", epoch_milliseconds(now))]


def lease_lost(claim: ManifestRow) -> LeaseLostError:
    return LeaseLostError(
        f"attempt {claim.attempt} of manifest {claim.id} lost its lease: "
        "another run has claimed it or may claim it; this attempt publishes nothing"
    )


def successor_row(row: ManifestRow, successor: ManifestRow) -> ManifestRow:
    """The first row of a successor. It has all tries left, and its attempt count shows that its files were tried."""
    return replace(successor, attempt=row.attempt, base_attempt=row.attempt)


def finished_attributes(row: ManifestRow, totals: PublishedTotals) -> tuple[dict[str, str], tuple[str, ...]]:
    """Attributes to set and to remove when a manifest becomes DONE; unreadable files keep it in the index."""
    if totals.failed_files:
        return open_attributes(row, Failure.UNREADABLE), ()
    return {}, INDEX_ATTRIBUTES
