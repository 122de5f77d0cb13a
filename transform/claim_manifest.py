"""Claims a manifest by its id, or returns the outcome of a manifest that needs no conversion.

Also renews the leases of attempts while work on them continues.
"""

import secrets
import threading
from datetime import timedelta
from typing import Self

from lake.commit import CommitDocument, read_commit
from lake.errors import InvalidDocumentError, LeaseLostError, NewerDocumentError, TransientError
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.publish import roll_forward
from lake.texts import advise_reprocess
from transform.give_up import format_given_up, supersede_or_fail
from transform.outcome import HELD, UNKNOWN, WAITING, ConversionOutcome, done_outcome
from transform.plan_attempt import find_kept_generation
from transform.task_model import ConversionContext

MAX_READS = 20
"""Maximum reads of a row for one claim: other runs change it a few times, and more changes mean a defect."""


def claim_or_finish(
    context: ConversionContext, manifest: str, *, skip_tried: bool = False
) -> ManifestRow | ConversionOutcome | None:
    """Claim the manifest, or finish what another run began. None: ``skip_tried``, and an attempt has failed before.

    A terminal manifest is returned as it is. A PUBLISHING one is rolled forward without a conversion; it is WAITING if
    a newer version committed it. A manifest with a live lease is HELD unless its owner run has ended, or this run got
    no answer to its own claim. Without attempts left, a manifest is superseded or FAILED. If a conversion could only
    replace published rows by fewer, it is DONE again with the published rows. Raises ``TransientError`` if the row
    changed concurrently at each of ``MAX_READS`` reads.
    """
    manifests, clock = context.ledger.manifests, context.clock
    found: ManifestRow | ConversionOutcome | None
    for _ in range(MAX_READS):
        row = manifests.get(manifest)
        if row is None:
            return ConversionOutcome(manifest, UNKNOWN, reason="the ledger has no such manifest: it was skipped")
        if not row.open:
            successors = _batch_successors(context, row)
            return ConversionOutcome(manifest, row.state, reason=row.reason, successors=successors)
        if row.state == State.PUBLISHING:
            found = publish(context, row)
        elif row.state == State.RUNNING and context.unanswered.get(row.id, "") != row.claim_nonce:
            found = _release_ended(context, row)
        elif skip_tried and row.tries > (row.state == State.RUNNING):
            return None
        elif row.state == State.RUNNING:
            found = _take_up(context, row)
        else:
            try:
                found = _claim(context, row)
            except InvalidDocumentError as error:
                manifests.fail(row, f"its documents cannot be used: {error}; {advise_reprocess(row.id)}", clock())
                found = None
        if found is not None:
            return found
    raise TransientError(
        f"manifest {manifest} changed its state {MAX_READS} times while it was claimed: try again later"
    )


def publish(
    context: ConversionContext, row: ManifestRow, document: CommitDocument | None = None
) -> ConversionOutcome | None:
    """Roll a PUBLISHING manifest forward; ``document`` is its commit document if known. None: read its row again."""
    resources = context.resources
    control, buckets = resources.control_bucket, resources.output_buckets
    has_table = context.settings.has_table(row.partition.dataset)
    try:
        state = roll_forward(context.s3, context.ledger, control, row, context.clock, buckets, has_table=has_table)
    except NewerDocumentError as error:
        return ConversionOutcome(row.id, WAITING, reason=str(error))
    if state != State.DONE or row.owner != context.run or row.document is None:
        return None
    return done_outcome(document or read_commit(context.s3, control, row.document))


def _release_ended(context: ConversionContext, row: ManifestRow) -> ConversionOutcome | None:
    # A live lease of this same run belongs to another call in it.
    own, now = row.owner == context.run, context.clock()
    if row.has_live_lease(now) and (own or not context.run_is_terminal(row.owner or "")):
        return ConversionOutcome(row.id, HELD, reason=f"run {row.owner} is working on it")
    reason = f"run {row.owner} ended during attempt {row.attempt} without reporting a result"
    context.ledger.manifests.release(row, reason, now)
    return None


def _take_up(context: ConversionContext, row: ManifestRow) -> ManifestRow | None:
    """Take up this run's claim that got no answer, with a full lease. None: read the row again."""
    lease, is_live = timedelta(seconds=context.settings.batch.lease_seconds), True
    try:
        context.ledger.manifests.renew(row, context.clock(), lease)
    except LeaseLostError:
        is_live = False
        # A round can be longer than a lease; even then the missing answer uses up no attempt.
        ended = "its lease ended before this run continued"
        context.ledger.manifests.release(row, ended, context.clock(), counted=False)
    # Only one of two concurrent calls gets the claim.
    return row if context.unanswered.pop(row.id, None) == row.claim_nonce and is_live else None


def _claim(context: ConversionContext, row: ManifestRow) -> ManifestRow | None:
    """Claim a QUEUED manifest, or end it if no attempt can add anything. None: read its row again.

    Raises ``InvalidDocumentError`` if one of its documents is gone or was changed.
    """
    now, kept = context.clock(), find_kept_generation(context, row)
    # An attempt that only found unreadable files does not count.
    is_given_up = row.tries >= context.settings.batch.max_attempts + (row.exclusions is not None)
    if kept is not None and (is_given_up or not kept.to_convert):
        # DONE instead of FAILED, because no later reprocess can replace the published generation.
        why = f"{kept.reason}; {format_given_up(row)}" if kept.to_convert else kept.reason
        context.ledger.manifests.keep_published(row, why, now)
    elif is_given_up:
        supersede_or_fail(context, row)
    else:
        lease, nonce = timedelta(seconds=context.settings.batch.lease_seconds), secrets.token_hex(8)
        try:
            return context.ledger.manifests.claim(row, context.run, now, lease, nonce)
        except Exception:
            context.unanswered[row.id] = nonce
            raise
    return None


def _batch_successors(context: ConversionContext, row: ManifestRow) -> tuple[str, ...]:
    """Batch lane successors of a superseded manifest of the batch lane; the stream lane gets its own by pointers."""
    if row.state != State.SUPERSEDED or row.lane != Lane.BATCH:
        return ()
    rows = map(context.ledger.manifests.get, row.superseded_by)
    return tuple(successor.id for successor in rows if successor is not None and successor.lane == Lane.BATCH)


RENEWALS_PER_LEASE = 4
"""Number of renewals within a lease: two in succession may fail, and the third is still in time."""


class LeaseKeeper:
    """A context manager that renews its claims in the background.

    If a lease is lost, work on the claim continues until its commit, which the ledger refuses.
    """

    def __init__(self, context: ConversionContext) -> None:
        self._context = context
        self._claims: dict[str, ManifestRow] = {}
        self._lease = timedelta(seconds=context.settings.batch.lease_seconds)
        self._interval = self._lease.total_seconds() / RENEWALS_PER_LEASE
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._renew_repeatedly, name="lease-keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def add(self, claim: ManifestRow) -> None:
        with self._lock:
            self._claims[claim.id] = claim

    def stop_renewing(self, manifest: str) -> None:
        """Stop renewing this manifest: it is committed, given up, or held by another run."""
        with self._lock:
            self._claims.pop(manifest, None)

    def renew_all(self) -> None:
        """Renew every claim once. After a renewal without an answer the claim stays: the next round retries it."""
        manifests, clock = self._context.ledger.manifests, self._context.clock
        with self._lock:
            claims = list(self._claims.values())
        unanswered: list[str] = []
        for claim in claims:
            try:
                manifests.renew(claim, clock(), self._lease)
            except LeaseLostError:
                self.stop_renewing(claim.id)
            except Exception as error:
                # All errors: if this thread ended, no other claim would be renewed.
                unanswered.append(f"{claim.id}: {type(error).__name__}: {error}")
        if unanswered:
            self._context.log(
                f"{len(unanswered)} of {len(claims)} leases were not renewed (first: {unanswered[0]}); the next try "
                f"is in {self._interval:g} s, each lease ends {self._lease.total_seconds():g} s after its last renewal"
            )

    def _renew_repeatedly(self) -> None:
        while not self._ended.wait(self._interval):
            self.renew_all()
