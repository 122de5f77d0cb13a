"""Files that the jobs may not read: they wait in a manifest of their own, and hold up no file that was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lake.counted import format_count
from lake.ledger import State
from lake.manifest import ObjectVersion, new_manifest_id
from lake.manifest_document import write_manifest
from lake.publish import abort_upload
from transform.outcome import ConversionOutcome

if TYPE_CHECKING:
    from lake.commit import PendingObject
    from transform.context import ConversionContext
    from transform.environment_fault import EnvironmentFault
    from transform.plan_attempt import Attempt
    from transform.task_model import TaskResult


def denied_files(results: Iterable[TaskResult]) -> dict[ObjectVersion, EnvironmentFault]:
    """The files that the tasks were not allowed to read."""
    return {
        failure.file: failure.denied for result in results for failure in result.failures if failure.denied is not None
    }


def why_all_wait(attempt: Attempt, results: Sequence[TaskResult]) -> EnvironmentFault | None:
    """The fault for which the whole manifest waits; None if no file was denied, or the denied ones can be set apart.

    They cannot where no other file was read: then nothing tells a denied file from a denied bucket. A manifest that was
    published is never superseded, so no file of it leaves it; what it has published stays visible meanwhile.
    """
    denied = denied_files(results)
    if not denied:
        return None
    read = {item.split.file for result in results for item in result.splits if item.split.file.size} - denied.keys()
    read |= {failure.file for result in results for failure in result.failures if failure.slow}
    return None if read and attempt.claim.row.published is None else next(iter(denied.values()))


def set_apart(
    context: ConversionContext, attempt: Attempt, denied: Iterable[ObjectVersion], uploaded: Iterable[PendingObject]
) -> ConversionOutcome | None:
    """Supersede the manifest by one of its denied files and one of its others; None: its row has changed.

    Both are as old as the manifest, stay in its lane and have all their tries. This run converts them.
    Raises botocore's errors.
    """
    services, row, now = context.services, attempt.claim.row, context.clock()
    refused = frozenset(denied)
    apart = tuple(file for file in attempt.manifest.files if file in refused)
    others = tuple(file for file in attempt.manifest.files if file not in refused)
    parts = [replace(attempt.manifest, id=new_manifest_id(now), files=files) for files in (apart, others)]
    for part in parts:
        write_manifest(services.s3, services.resources.control_bucket, part)
    waiting, rest = parts
    reason = (
        f"{format_count(len(apart), 'file')} may not be read (first: {apart[0].uri}) and waits in manifest "
        f"{waiting.id}; the others are in manifest {rest.id}"
    )
    if not services.ledger.manifests.supersede([row], parts, reason, now):
        return None
    # No commit of this attempt can follow.
    for item in uploaded:
        abort_upload(services.s3, item.bucket, item.key, item.upload_id)
    return ConversionOutcome(row.id, State.SUPERSEDED, reason=reason, successors=(waiting.id, rest.id))
