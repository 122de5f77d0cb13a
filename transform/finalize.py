"""The end of an attempt: commit and publish it, or give it up so that nothing of it can ever be seen."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.commit import write_commit
from lake.errors import AuditError, LeaseLostError
from lake.layout import commit_key, lake_prefix
from lake.ledger import State
from lake.publish import abort_upload, roll_forward
from transform.exclusions import write_exclusions
from transform.outcome import ConversionOutcome
from transform.plan_attempt import commit_document
from transform.upload import abort_strays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lake.commit import CommitDocument, PendingObject
    from lake.ledger import Claim, Document
    from lake.manifest import ObjectVersion
    from transform.context import ConversionContext, JobServices
    from transform.plan_attempt import Attempt
    from transform.task_model import TaskResult

COMMIT_TRIES = 3


def finalize(context: ConversionContext, attempt: Attempt, results: Sequence[TaskResult]) -> ConversionOutcome | None:
    """Audit, commit, publish; None: the attempt was given up, claim the manifest again."""
    services = context.services
    failures = {failure.file: failure.reason for result in results for failure in result.failures}
    uploaded = [item for result in results for item in result.uploaded]
    if failures:
        _exclude(context, attempt, failures, uploaded)
        return None
    try:
        document = commit_document(services, attempt, results)
    except AuditError as error:
        give_up(context, attempt.claim, str(error), uploaded)
        return None
    row = attempt.claim.row
    key = commit_key(row.id, row.generation, row.attempt, secrets.token_hex(4))
    named = write_commit(services.s3, services.resources.control_bucket, key, document)
    if not _commit(context, attempt.claim, named, (*document.objects, *document.quarantine)):
        return None
    return _publish(context, document, named)


def give_up(
    context: ConversionContext,
    claim: Claim,
    reason: str,
    uploaded: Iterable[PendingObject],
    exclusions: str | None = None,
) -> None:
    """Back to QUEUED, then abort what was uploaded: in this order no commit of this attempt can follow.

    Uploads of task attempts whose ids nobody reported stay behind; they are aborted once the manifest is committed.
    """
    services = context.services
    released = services.ledger.manifests.release(claim.row, reason, context.clock(), exclusions)
    if released or _moved_on(services, claim):
        for item in uploaded:
            abort_upload(services.s3, item.bucket, item.key, item.upload_id)


def _exclude(
    context: ConversionContext,
    attempt: Attempt,
    failures: Mapping[ObjectVersion, str],
    uploaded: Iterable[PendingObject],
) -> None:
    services = context.services
    excluded = {**attempt.excluded, **failures}
    key = write_exclusions(services.s3, services.resources.control_bucket, attempt.claim.row, excluded)
    first = next(iter(failures.items()))
    reason = f"{len(failures)} files cannot be read to their end (first: {first[0].uri}: {first[1]})"
    give_up(context, attempt.claim, reason, uploaded, key)


def _commit(context: ConversionContext, claim: Claim, named: Document, uploaded: Iterable[PendingObject]) -> bool:
    """The commit point. Refused or unanswered, the row is read before anything is aborted."""
    manifests = context.services.ledger.manifests
    for _ in range(COMMIT_TRIES):
        try:
            manifests.commit(claim, named, context.clock())
        except LeaseLostError:
            break
        except (BotoCoreError, ClientError):
            continue
        return True
    # An update without an answer may still be under way: only a row that has left this attempt settles it.
    give_up(context, claim, "its commit was refused or got no answer", ())
    row = manifests.get(claim.row.id)
    assert row is not None
    published = None if row.published is None else row.published.document
    if named in (row.document, published):
        return True
    give_up(context, claim, "its commit was refused or got no answer", uploaded)
    return False


def _moved_on(services: JobServices, claim: Claim) -> bool:
    """Whether no commit of this attempt stands or can still come."""
    row = services.ledger.manifests.get(claim.row.id)
    if row is None:
        return False
    fence = (row.generation, row.attempt) != (claim.row.generation, claim.row.attempt)
    return fence or row.state in (State.QUEUED, State.SUPERSEDED)


def _publish(context: ConversionContext, document: CommitDocument, named: Document) -> ConversionOutcome | None:
    services = context.services
    manifests, resources = services.ledger.manifests, services.resources
    row = manifests.get(document.manifest)
    assert row is not None
    state = row.state
    if state == State.PUBLISHING and row.document == named:
        buckets = resources.output_buckets
        state = roll_forward(services.s3, services.ledger, resources.control_bucket, row, context.clock, buckets)
    keep = {item.upload_id for item in (*document.objects, *document.quarantine)}
    prefix = lake_prefix(document.partition, document.manifest, document.generation)
    for bucket in (resources.lake_bucket, resources.quarantine_bucket):
        abort_strays(services.s3, bucket, prefix, keep)
    if state != State.DONE:
        after = manifests.get(document.manifest)
        reason = None if after is None else after.reason
        return ConversionOutcome(document.manifest, state, reason=reason) if state == State.FAILED else None
    read = sum(source.size for source in document.sources if source.failed is None)
    written = sum(item.size for item in document.objects)
    services.ledger.datasets.add_measurement(document.partition.dataset, read, written, document.task_milliseconds)
    rejects = sum(sum(source.rejects.values()) for source in document.sources)
    failed = [source for source in document.sources if source.failed is not None]
    reason = f"{len(failed)} files failed (first: {failed[0].uri}: {failed[0].failed})" if failed else None
    return ConversionOutcome(document.manifest, State.DONE, document.rows, rejects, reason)
