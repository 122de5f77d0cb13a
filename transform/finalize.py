"""Ends an attempt: audits, commits and publishes it."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

from botocore.exceptions import BotoCoreError, ClientError

from lake.commit import CommitDocument, put_bound_document
from lake.layout import commit_key
from lake.ledger import DatasetMeasurement, ManifestRow, State
from lake.manifest_documents import write_exclusions
from lake.texts import format_count
from transform.audit import audit
from transform.claim_manifest import publish
from transform.give_up import give_up, set_apart
from transform.outcome import ConversionOutcome
from transform.plan_attempt import Attempt, measure_conversion
from transform.task_model import ConversionContext, TaskResult


def finalize(context: ConversionContext, attempt: Attempt, results: Sequence[TaskResult]) -> ConversionOutcome | None:
    """Audit, commit and publish. Returns None if the attempt was given up: the manifest must be claimed again.

    Raises ``AuditError`` if the written data does not add up; ``LeaseLostError`` if the commit was refused;
    ``BotoCoreError`` or ``ClientError`` if S3 or the ledger did not answer. The caller then gives the attempt up, which
    is safe at every point: after an unanswered commit that was applied, its release is refused, and the next claim
    publishes the manifest.
    """
    row = attempt.claim
    failures = [failure for result in results for failure in result.failures]
    uploaded = [item for result in results for item in result.uploaded]
    if any(failure.slow or failure.denied for failure in failures):
        return set_apart(context, attempt, failures, uploaded)
    if failures:
        # The next attempt skips the files that failed in this attempt and in earlier ones.
        excluded = attempt.excluded | {failure.file: failure.reason for failure in failures}
        exclusions = write_exclusions(context.s3, context.resources.control_bucket, row, excluded)
        first = f"{failures[0].file.uri}: {failures[0].reason}"
        number = format_count(len(excluded.keys() - attempt.excluded.keys()), "file")
        give_up(context, attempt.claim, f"{number} cannot be read to the end (first: {first})", uploaded, exclusions)
        return None
    document = commit_document(context, attempt, results)
    if not _reserve_columns(context, attempt, document):
        return None
    key = commit_key(row.id, row.generation, row.attempt, secrets.token_hex(4))
    reference = put_bound_document(context.s3, context.resources.control_bucket, key, document)
    committed = context.ledger.manifests.commit(attempt.claim, reference, context.clock())
    return _publish(context, attempt, committed, document, measure_conversion(results))


def commit_document(context: ConversionContext, attempt: Attempt, results: Sequence[TaskResult]) -> CommitDocument:
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
    rules = context.settings.convert if attempt.kept is None else attempt.kept.document
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
    dataset = attempt.manifest.partition.dataset
    limit, today = context.settings.convert.column_limit, context.clock().astimezone(UTC).date()
    refused = context.ledger.datasets.reserve_columns(dataset, document.new_columns, limit, today)
    if refused:
        reason = (
            f"dataset {dataset} has no room for {len(refused)} of its new columns (first: {refused[0]}): it is "
            "converted again, and their keys go to _rescued"
        )
    elif document.new_columns and (shared := _newly_unnumbered(context, attempt, document.new_columns)):
        reason = f"column {shared[0]} of dataset {dataset} has the field id of another one: it is converted again"
    else:
        return True
    context.log(f"manifest {attempt.manifest.id}: {reason}")
    give_up(context, attempt.claim, reason, document.written, counted=attempt.columns_full)
    return False


def _newly_unnumbered(context: ConversionContext, attempt: Attempt, new_columns: Sequence[str]) -> list[str]:
    """Columns that have no field id in the ledger although files of the attempt give them one."""
    # Frozen per attempt, so the same in every task.
    known = attempt.tasks[0].unnumbered
    if known is None:
        return []
    dataset = context.ledger.datasets.get(attempt.manifest.partition.dataset)
    assert dataset is not None
    return sorted(dataset.unnumbered.intersection(new_columns) - known)


def _publish(
    context: ConversionContext,
    attempt: Attempt,
    committed: ManifestRow,
    document: CommitDocument,
    measured: DatasetMeasurement,
) -> ConversionOutcome | None:
    """Publish the committed attempt, and add it to the dataset's measurements, which later plans use.

    None: it is not DONE, or another process has published it, so the manifest must be claimed again.
    """
    datasets, dataset = context.ledger.datasets, document.partition.dataset
    outcome = publish(context, committed, document)
    if outcome is None or outcome.state != State.DONE:
        return outcome
    try:
        datasets.add_measurement(dataset, measured)
    except (BotoCoreError, ClientError) as error:
        context.log(f"the measurement of dataset {dataset} was not recorded: {error}; its next manifest is measured")
    if attempt.kept is None:
        return outcome
    return replace(outcome, reason="; ".join(filter(None, (attempt.kept.reason, outcome.reason))))
