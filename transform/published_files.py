"""A generation never replaces rows that it lacks: files that the published one has read must still be readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.commands import advise_reprocess
from lake.commit import read_commit
from lake.counted import format_count
from lake.errors import InvalidDocumentError
from lake.exclusions import read_exclusions
from lake.manifest import read_manifest

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from transform.context import JobServices


def why_not_replaced(services: JobServices, row: ManifestRow) -> str | None:
    """Why the row's next attempt may not replace what it has published; None: it may.

    An attempt leaves out the files that the attempts before could not read. If the published generation has read one
    of them, its rows would be deleted with that generation, so the manifest has to end FAILED instead.

    Raises
    ------
    NewerDocumentError
        A newer version has published it.
    ClientError, BotoCoreError
        A document could not be read now.
    """
    if row.published is None or row.exclusions is None:
        return None
    resources, s3 = services.resources, services.s3
    try:
        manifest = read_manifest(s3, resources.control_bucket, row, resources.file_buckets)
        excluded = read_exclusions(s3, resources.control_bucket, row.exclusions, manifest)
        published = read_commit(s3, resources.control_bucket, row.published.document)
    except InvalidDocumentError as error:
        return f"its documents cannot be used: {error}; {advise_reprocess(row.id)}"
    read = {(source.uri, source.version) for source in published.sources if source.failed is None}
    lost = [(file.uri, reason) for file, reason in excluded.items() if (file.uri, file.version) in read]
    if not lost:
        return None
    uri, reason = lost[0]
    return (
        f"{format_count(len(lost), 'file')} of its published generation {row.published.generation} can no longer be "
        f"read (first: {uri}: {reason}); what it has published stays; {advise_reprocess(row.id)}"
    )
