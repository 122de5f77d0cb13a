"""Ends an attempt: audits, commits and publishes it."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC

from botocore.exceptions import BotoCoreError, ClientError

from lake.commit import CommitDocument, PendingObject, put_bound_document
from lake.errors import AuditError, LeaseLostError
from lake.layout import commit_key
from lake.ledger import CommitReference, DatasetMeasurement, ManifestRow, State
from lake.manifest_documents import write_exclusions
from lake.texts import format_count
from transform.audit import audit
from transform.claim_manifest import publish
from transform.give_up import fault_of, give_up, set_apart
from transform.outcome import ConversionOutcome
from transform.plan_attempt import Attempt, measure_conversion
from transform.task_model import ConversionContext, JobServices, TaskResult

COMMIT_UNSETTLED = "its commit was refused or got no answer"


def finalize(context: ConversionContext, attempt: Attempt, results: Sequence[TaskResult]) -> ConversionOutcome | None:
    """Audit, commit and publish. None: the attempt was given up, so the manifest must be claimed again.

    Raises ``BotoCoreError`` or ``ClientError`` if S3 or the ledger did not answer; the caller then gives the attempt
    up, which is safe at every point.
    """
    services, row = context.services, attempt.claim
    failures = [failure for result in results for failure in result.failures]
    uploaded = [item for result in results for item in result.uploaded]
    if any(failure.slow or failure.denied for failure in failures):
        return set_apart(context, attempt, failures, uploaded)
    if failures:
        # The next attempt skips the files that failed in this attempt and in earlier ones.
        excluded = attempt.excluded | {failure.file: failure.reason for failure in failures}
        exclusions = write_exclusions(services.s3, services.resources.control_bucket, row, excluded)
        first = f"{failures[0].file.uri}: {failures[0].reason}"
        number = format_count(len(excluded.keys() - attempt.excluded.keys()), "file")
        give_up(context, attempt.claim, f"{number} cannot be read to the end (first: {first})", uploaded, exclusions)
        return None
    try:
        document = commit_document(services, attempt, results)
    except AuditError as error:
        give_up(context, attempt.claim, str(error), uploaded)
        return None
    if not _reserve_columns(context, attempt, document):
        return None
    key = commit_key(row.id, row.generation, row.attempt, secrets.token_hex(4))
    reference = put_bound_document(services.s3, services.resources.control_bucket, key, document)
    if not _commit(context, attempt.claim, reference, document.written):
        return None
    return _publish(context, attempt, document, reference, measure_conversion(results))


def commit_document(services: JobServices, attempt: Attempt, results: Sequence[TaskResult]) -> CommitDocument:
    """Audit the results, and collect everything that publishing needs.

    Raises ``AuditError`` if the written data does not add up to what was read.
    """
    sources = audit(attempt.manifest, attempt.tasks, results, {} if attempt.kept is None else attempt.kept.sources)
    ordered = sorted(results, key=lambda result: result.number)
    objects = [item for result in ordered for item in result.objects]
    quarantine = [item for result in ordered for item in result.quarantine]
    if attempt.kept is not None:
        objects = [*attempt.kept.document.objects, *objects]
        quarantine = [*attempt.kept.document.rejected_lines, *quarantine]
    row = attempt.claim
    assert row.owner is not None
    rules = services.settings.convert if attempt.kept is None else attempt.kept.document
    return CommitDocument(
        attempt.manifest.id,
        row.generation,
        row.attempt,
        attempt.manifest.partition,
        row.owner,
        attempt.started_at,
        tuple(objects),
        tuple(quarantine),
        sources,
        tuple(dict.fromkeys(name for result in ordered for name in result.new_columns)),
        sum(result.milliseconds for result in results),
        rules.max_line_bytes,
        rules.concatenated,
        rules.provenance,
    )


def _reserve_columns(context: ConversionContext, attempt: Attempt, document: CommitDocument) -> bool:
    """Reserve the attempt's new columns. False: the attempt was given up.

    Either the dataset has no room for all columns: it is full then, and the columns of the next attempt are frozen. An
    attempt with frozen columns should find no new one; if it does, it counts, so that it is not repeated for ever. Or a
    new column has the field id of another column: files of the next attempt have no field ids.
    """
    services, dataset = context.services, attempt.manifest.partition.dataset
    limit, today = services.settings.convert.column_limit, context.clock().astimezone(UTC).date()
    refused = services.ledger.datasets.reserve_columns(dataset, document.new_columns, limit, today)
    if refused:
        reason = (
            f"dataset {dataset} has no room for {len(refused)} of its new columns (first: {refused[0]}): it is "
            "converted again, and their keys go to _rescued"
        )
    elif document.new_columns and (shared := _newly_unnumbered(services, attempt, document.new_columns)):
        reason = f"column {shared[0]} of dataset {dataset} has the field id of another one: it is converted again"
    else:
        return True
    context.log(f"manifest {attempt.manifest.id}: {reason}")
    give_up(context, attempt.claim, reason, document.written, counted=attempt.columns_full)
    return False


def _newly_unnumbered(services: JobServices, attempt: Attempt, new_columns: Sequence[str]) -> list[str]:
    """Columns that have no field id in the ledger although files of the attempt give them one."""
    # Frozen per attempt, so the same in every task.
    known = attempt.tasks[0].unnumbered
    if known is None:
        return []
    dataset = services.ledger.datasets.get(attempt.manifest.partition.dataset)
    assert dataset is not None
    return sorted(dataset.unnumbered.intersection(new_columns) - known)


def _commit(
    context: ConversionContext, claim: ManifestRow, reference: CommitReference, uploaded: Iterable[PendingObject]
) -> bool:
    """The commit point. If the commit is refused or gets no answer, the row decides.

    Raises ``BotoCoreError`` or ``ClientError`` if a fault of the environment was the cause and the ledger does not have
    the commit.
    """
    manifests = context.services.ledger.manifests
    refusal: Exception | None = None
    try:
        manifests.commit(claim, reference, context.clock())
    except LeaseLostError:
        pass
    except (BotoCoreError, ClientError) as error:
        refusal = error
        context.log(f"the commit of manifest {claim.id} got no answer: {error}; its ledger row decides")
    else:
        return True
    fault = None if refusal is None else fault_of(refusal)
    reason = COMMIT_UNSETTLED if fault is None else str(fault)
    # An unanswered update may still be applied, until the row has left this attempt.
    give_up(context, claim, reason, uploaded, counted=fault is None)
    row = manifests.get(claim.id)
    assert row is not None
    published = None if row.published is None else row.published.document
    if reference in (row.document, published):
        return True
    if fault is not None and refusal is not None:
        raise refusal
    return False


def _publish(
    context: ConversionContext,
    attempt: Attempt,
    document: CommitDocument,
    reference: CommitReference,
    measured: DatasetMeasurement,
) -> ConversionOutcome | None:
    """Publish the committed attempt, and add it to the dataset's measurements, which later plans use.

    None: it is not DONE, or another process has published it, so the manifest must be claimed again.
    """
    datasets, dataset = context.services.ledger.datasets, document.partition.dataset
    row = context.services.ledger.manifests.get(document.manifest)
    if row is None or row.state != State.PUBLISHING or row.document != reference:
        return None
    outcome = publish(context, row, document)
    if outcome is None or outcome.state != State.DONE:
        return outcome
    try:
        datasets.add_measurement(dataset, measured)
    except (BotoCoreError, ClientError) as error:
        context.log(f"the measurement of dataset {dataset} was not recorded: {error}; its next manifest is measured")
    if attempt.kept is None:
        return outcome
    return replace(outcome, reason="; ".join(filter(None, (attempt.kept.reason, outcome.reason))))
