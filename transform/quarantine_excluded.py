"""Files that cannot be read to their end, as a quarantine object of the attempt that leaves them out."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from lake.layout import quarantine_key
from transform.audit import check_excluded
from transform.quarantine_writer import QuarantineContent, QuarantineFiles, file_record
from transform.task_model import NUMBERS_PER_TASK
from transform.upload import Uploads

if TYPE_CHECKING:
    from lake.commit import PendingObject
    from lake.manifest import Manifest, ObjectVersion
    from transform.clients import OutputFiles
    from transform.context import JobServices
    from transform.plan_attempt import Attempt

ONE_FILE = 1 << 40
"""A target size in bytes that no list of excluded files reaches: they become one object."""


def quarantine_excluded(services: JobServices, attempt: Attempt) -> list[PendingObject]:
    """The excluded files, by reference, as one more quarantine object, numbered after those of all tasks.

    Raises
    ------
    AuditError
        The written file does not hold each of them once.
    """
    if not attempt.left_out:
        return []
    manifest, generation = attempt.manifest, attempt.claim.row.generation
    key = excluded_key(manifest, generation, len(attempt.tasks))
    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder, Uploads(services.s3) as uploads:
        bucket = services.resources.quarantine_bucket
        return write_excluded(manifest, attempt.left_out, bucket, key, uploads, Path(folder))


def excluded_key(manifest: Manifest, generation: int, tasks: int) -> str:
    """Key of the object that names the excluded files, after those of so many ``tasks``."""
    return quarantine_key(manifest.partition, manifest.id, generation, tasks * NUMBERS_PER_TASK)


def write_excluded(
    manifest: Manifest,
    excluded: Mapping[ObjectVersion, str],
    bucket: str,
    key: str,
    uploads: OutputFiles,
    folder: Path,
) -> list[PendingObject]:
    """The excluded files, with the reason of each, as one object that ``uploads`` takes over.

    Raises
    ------
    AuditError
        The written file does not hold each of them once.
    """
    pending: list[Future[PendingObject]] = []
    contents: list[QuarantineContent] = []

    def upload(path: Path, content: QuarantineContent) -> None:
        contents.append(content)
        pending.append(uploads.add(path, bucket, key, content.records))

    writer = QuarantineFiles(folder, ONE_FILE, upload)
    writer.write(file_record(file, reason) for file, reason in excluded.items())
    writer.close()
    check_excluded(manifest, excluded, contents)
    uploads.finish()
    return [future.result() for future in pending]
