"""The end of an attempt that is not committed: given up so that no reader can ever see anything of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.counted import format_count
from lake.exclusions import write_exclusions
from lake.ledger import Claim, State
from lake.publish import abort_upload

if TYPE_CHECKING:
    from lake.commit import PendingObject
    from lake.manifest import ObjectVersion
    from transform.context import ConversionContext, JobServices
    from transform.environment_fault import EnvironmentFault
    from transform.plan_attempt import Attempt


def give_up(
    context: ConversionContext,
    claim: Claim,
    reason: str,
    uploaded: Iterable[PendingObject],
    exclusions: str | None = None,
    *,
    counted: bool = True,
) -> None:
    """Back to QUEUED, then abort what was uploaded: in this order no commit of this attempt can follow.

    Uploads that only a lost task attempt knows remain; they are aborted once the manifest is committed.

    Parameters
    ----------
    reason
        For the row, and for the person who reads it.
    exclusions
        Key of the document that names the files which the next attempt leaves out.
    counted
        Whether the attempt uses up a try.
    """
    services = context.services
    released = services.ledger.manifests.release(claim.row, reason, context.clock(), exclusions, counted=counted)
    if released or _can_no_longer_commit(services, claim):
        for item in uploaded:
            abort_upload(services.s3, item.bucket, item.key, item.upload_id)


def record_fault(context: ConversionContext, manifest: str, fault: EnvironmentFault) -> None:
    """Let the row of a waiting or PUBLISHING manifest name the fault, so that the verdict of the execution names it.

    An error is only logged: the log has the fault as well.
    """
    ledger = context.services.ledger
    try:
        row = ledger.manifests.get(manifest)
        if row is not None and row.state != State.RUNNING:
            ledger.manifests.record_reason(row, str(fault))
    except (BotoCoreError, ClientError) as error:
        context.log(f"the ledger does not have the reason of manifest {manifest}, this log alone has it: {error}")


def exclude_and_give_up(
    context: ConversionContext,
    attempt: Attempt,
    failures: Mapping[ObjectVersion, str],
    uploaded: Iterable[PendingObject],
) -> None:
    """Give the attempt up; the next one runs without the files that failed in this one and in those before.

    Raises botocore's errors.
    """
    services = context.services
    excluded = {**attempt.excluded, **failures}
    key = write_exclusions(services.s3, services.resources.control_bucket, attempt.claim.row, excluded)
    file, failure = next(iter(failures.items()))
    reason = f"{format_count(len(failures), 'file')} cannot be read to their end (first: {file.uri}: {failure})"
    give_up(context, attempt.claim, reason, uploaded, key)


def _can_no_longer_commit(services: JobServices, claim: Claim) -> bool:
    """Whether the row has left this attempt without a commit, so that none of it can follow."""
    row = services.ledger.manifests.get(claim.row.id)
    if row is None:
        return False
    other_attempt = (row.generation, row.attempt) != (claim.row.generation, claim.row.attempt)
    return other_attempt or row.state in (State.QUEUED, State.SUPERSEDED)
