"""A generation never replaces rows that it lacks: what can no longer be read stays as it was published."""

from __future__ import annotations

from dataclasses import dataclass

from lake.commit import CommitDocument, SourceCount, read_commit
from lake.ledger import ManifestRow
from lake.manifest import ObjectVersion
from lake.manifest_documents import read_exclusions, read_manifest
from lake.texts import format_count
from transform.task_model import JobServices


@dataclass(frozen=True, slots=True)
class KeptGeneration:
    """The published generation, which the next attempt keeps: it converts only files that are not in it."""

    document: CommitDocument
    sources: dict[ObjectVersion, SourceCount]
    """The counts of the files whose rows it keeps."""
    to_convert: tuple[ObjectVersion, ...]
    """Files that the published generation could not read, and that nobody has found unreadable since."""
    reason: str
    """Why it is kept."""


def find_kept_generation(services: JobServices, row: ManifestRow) -> KeptGeneration | None:
    """What the next attempt keeps, because a file of it can no longer be read; None: it converts all files again.

    Raises ``UnusableDocumentError``: a document is gone, was changed, or cannot be read by this version;
    ``ClientError``, ``BotoCoreError``: a document could not be read now.
    """
    if row.published is None or row.exclusions is None:
        return None
    resources, s3 = services.resources, services.s3
    manifest = read_manifest(s3, resources.control_bucket, row, resources.file_buckets)
    excluded = read_exclusions(s3, resources.control_bucket, row.exclusions, manifest)
    published = read_commit(s3, resources.control_bucket, row.published.document)
    counts = {(source.uri, source.version): source for source in published.sources if source.failed is None}
    sources = {file: counts[name] for file in manifest.files if (name := (file.uri, file.version)) in counts}
    lost = [(file.uri, reason) for file, reason in excluded.items() if file in sources]
    if not lost:
        return None
    uri, reason = lost[0]
    return KeptGeneration(
        published,
        sources,
        tuple(file for file in manifest.files if file not in sources and file not in excluded),
        f"{format_count(len(lost), 'file')} of its published generation {row.published.generation} can no longer be "
        f"read (first: {uri}: {reason}); what it has published stays",
    )
