"""From a manifest id to a claim, or to the news that there is nothing to convert."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lake.errors import TransientError
from lake.ledger import Claim, State
from lake.manifest import Lane
from lake.publish import roll_forward
from transform.outcome import HELD, UNKNOWN, ConversionOutcome
from transform.poison_manifest import attempts_allowed, supersede_or_fail

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lake.ledger import ManifestRow
    from transform.services import Services

READS = 20
"""How often a row may move on under our eyes before something must be wrong."""


def take(
    services: Services,
    manifest: str,
    run: str,
    clock: Callable[[], datetime],
    run_is_terminal: Callable[[str], bool],
) -> Claim | ConversionOutcome:
    """Claim the manifest, or finish what is left of it.

    Ended: nothing to do. PUBLISHING: that publish is rolled forward, nothing is converted. A live lease is HELD unless
    its owner run has ended. A manifest without attempts left is superseded or FAILED.
    """
    manifests = services.ledger.manifests
    for _ in range(READS):
        row = manifests.get(manifest)
        if row is None:
            return ConversionOutcome(
                manifest, UNKNOWN, reason="the ledger has no such manifest: nothing was done for it"
            )
        if not row.open:
            return ConversionOutcome(manifest, row.state, reason=row.reason, successors=_successors(services, row))
        if row.state == State.PUBLISHING:
            resources = services.resources
            roll_forward(services.s3, services.ledger, resources.control_bucket, row, clock, resources.output_buckets)
        elif row.state == State.RUNNING:
            if row.has_live_lease(clock()) and (row.owner == run or not run_is_terminal(row.owner or "")):
                return ConversionOutcome(manifest, HELD, reason=f"run {row.owner} is working on it")
            manifests.release(row, f"run {row.owner} ended in attempt {row.attempt} without a word", clock())
        elif row.tries >= attempts_allowed(services.settings, row):
            supersede_or_fail(services, row, clock())
        else:
            lease = timedelta(seconds=services.settings.batch.lease_seconds)
            claim = manifests.claim(row, run, clock(), lease)
            if claim is not None:
                return claim
    raise TransientError(f"manifest {manifest} changed its state {READS} times while it was claimed: try again later")


def _successors(services: Services, row: ManifestRow) -> tuple[str, ...]:
    """Those in the batch lane of a superseded manifest of that lane: whoever was to convert it converts them."""
    if row.state != State.SUPERSEDED or row.lane != Lane.BATCH:
        return ()
    rows = map(services.ledger.manifests.get, row.superseded_by)
    return tuple(successor.id for successor in rows if successor is not None and successor.lane == Lane.BATCH)
