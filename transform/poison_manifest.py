"""A manifest that used up its attempts: smaller manifests supersede it, or it ends FAILED with its reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from lake.commands import advise_reprocess
from lake.counted import format_count
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, new_manifest_id
from lake.manifest_document import read_manifest, write_manifest
from lake.time import iso_utc
from transform.outcome import GIVEN_UP

if TYPE_CHECKING:
    from lake.settings import Settings
    from transform.context import JobServices


def attempts_allowed(settings: Settings, row: ManifestRow) -> int:
    """Maximum number of attempts of this generation; one that only found unreadable files does not count."""
    return settings.batch.max_attempts + (row.exclusions is not None)


def format_given_up(row: ManifestRow) -> str:
    """The reason of a manifest that may not be tried again."""
    why = row.reason or "its runs ended without reporting a result"
    return f"{GIVEN_UP} {format_count(row.tries, 'attempt')}: {why}"


def supersede_or_fail(services: JobServices, row: ManifestRow, now: datetime) -> bool:
    """Supersede or fail a QUEUED manifest that may not be tried again; False: the row has changed, read it again.

    A manifest of the stream lane goes to the batch lane as it is. There it is halved until a bad file has a manifest
    of its own, which ends FAILED. A manifest that was published before is never superseded: it ends FAILED, and what
    it published stays.

    Raises
    ------
    InvalidDocumentError
        The manifest's document is not valid.
    """
    assert row.state == State.QUEUED
    reason = format_given_up(row)
    successors = [] if row.published is not None else _plan_successors(services, row, now)
    if not successors:
        return services.ledger.manifests.fail(row, f"{reason}; {advise_reprocess(row.id)}", now)
    for successor in successors:
        write_manifest(services.s3, services.resources.control_bucket, successor)
    return services.ledger.manifests.supersede([row], successors, reason, now)


def _plan_successors(services: JobServices, row: ManifestRow, now: datetime) -> list[Manifest]:
    resources = services.resources
    manifest = read_manifest(services.s3, resources.control_bucket, row, resources.file_buckets)
    fresh = replace(manifest, lane=Lane.BATCH, urgent=False, created_at=iso_utc(now))
    if row.lane == Lane.STREAM:
        return [replace(fresh, id=new_manifest_id(now))]
    if len(manifest.files) < 2:
        return []
    middle = len(manifest.files) // 2
    halves = (manifest.files[:middle], manifest.files[middle:])
    return [replace(fresh, id=new_manifest_id(now), files=files) for files in halves]
