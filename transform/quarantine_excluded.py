"""Files that cannot be read to their end, as a quarantine object of the attempt that leaves them out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lake.layout import quarantine_key
from transform.audit import check_excluded
from transform.quarantine_writer import QuarantineFiles, file_record
from transform.task_model import NUMBERS_PER_TASK
from transform.upload import Uploads

if TYPE_CHECKING:
    from concurrent.futures import Future

    from lake.commit import PendingObject
    from transform.context import JobServices
    from transform.plan_attempt import Attempt
    from transform.quarantine_content import QuarantineContent

ONE_FILE = 1 << 40
"""A target size in bytes that no list of excluded files reaches: they become one object."""


def quarantine_excluded(services: JobServices, attempt: Attempt) -> list[PendingObject]:
    """The excluded files, by reference, as one more quarantine object, numbered after those of all tasks.

    Raises
    ------
    AuditError
        The written file does not hold each of them once.
    """
    if not attempt.excluded:
        return []
    manifest, generation = attempt.manifest, attempt.claim.row.generation
    number = len(attempt.tasks) * NUMBERS_PER_TASK
    key = quarantine_key(manifest.partition, manifest.id, generation, number)
    bucket = services.resources.quarantine_bucket
    pending: list[Future[PendingObject]] = []
    contents: list[QuarantineContent] = []

    def upload(path: Path, content: QuarantineContent) -> None:
        contents.append(content)
        pending.append(uploads.add(path, bucket, key, content.records))

    with tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder, Uploads(services.s3) as uploads:
        writer = QuarantineFiles(Path(folder), ONE_FILE, upload)
        writer.write(file_record(file, reason) for file, reason in attempt.excluded.items())
        writer.close()
        check_excluded(manifest, attempt.excluded, contents)
        uploads.finish()
    return [future.result() for future in pending]
