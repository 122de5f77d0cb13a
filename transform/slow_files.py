"""Files that are too slow for the stream lane: they go to the batch lane, and the others of their manifest stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lake.counted import format_count
from lake.ledger import State
from lake.manifest import Lane, ObjectVersion, new_manifest_id
from lake.manifest_document import write_manifest
from lake.publish import abort_upload
from transform.outcome import ConversionOutcome

if TYPE_CHECKING:
    from lake.commit import PendingObject
    from transform.context import ConversionContext
    from transform.plan_attempt import Attempt
    from transform.task_model import TaskResult


def slow_files(results: Iterable[TaskResult]) -> dict[ObjectVersion, str]:
    """The files that the tasks have left to the batch lane, with the reason."""
    return {failure.file: failure.reason for result in results for failure in result.failures if failure.slow}


def leave_stream(
    context: ConversionContext, attempt: Attempt, slow: Mapping[ObjectVersion, str], uploaded: Iterable[PendingObject]
) -> ConversionOutcome | None:
    """Supersede the manifest by one of its slow files in the batch lane, and one of its others.

    Both have all their tries, and this run converts the others at once. None: the row has changed.
    Raises botocore's errors.
    """
    services, row, now = context.services, attempt.claim.row, context.clock()
    left = tuple(file for file in attempt.manifest.files if file in slow)
    others = tuple(file for file in attempt.manifest.files if file not in slow)
    parts = [replace(attempt.manifest, id=new_manifest_id(now), files=left, lane=Lane.BATCH, urgent=False)]
    if others:
        parts.append(replace(attempt.manifest, id=new_manifest_id(now), files=others))
    for part in parts:
        write_manifest(services.s3, services.resources.control_bucket, part)
    reason = (
        f"{format_count(len(left), 'file')} left the stream lane (first: {left[0].uri}: {slow[left[0]]}), manifest "
        f"{parts[0].id} is that of the batch lane"
    )
    if not services.ledger.manifests.supersede([row], parts, reason, now):
        return None
    # No commit of this attempt can follow.
    for item in uploaded:
        abort_upload(services.s3, item.bucket, item.key, item.upload_id)
    return ConversionOutcome(row.id, State.SUPERSEDED, reason=reason, successors=tuple(part.id for part in parts[1:]))
