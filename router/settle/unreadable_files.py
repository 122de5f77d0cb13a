"""The files of an execution that could not be read, by name, from the result documents of their manifests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.documents import get_document
from lake.errors import InvalidDocumentError
from lake.layout import result_key

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from router.services import Services

MAX_NAMED_FILES = 100
"""Maximum number of unreadable files that a verdict document names, and of documents that are read to find them."""
PARALLEL_READS = 16
"""Threads; each holds the document of one manifest."""


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that is in the quarantine by reference."""

    uri: str
    version: str
    manifest: str
    reason: str


def read_unreadable_files(services: Services, rows: Sequence[ManifestRow]) -> list[UnreadableFile]:
    """The unreadable files of the first ``MAX_NAMED_FILES`` of these DONE manifests, as many at most.

    A manifest whose result document is gone names none. Raises botocore's errors.
    """
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        found = pool.map(lambda row: _files_of(services, row), rows[:MAX_NAMED_FILES])
        return [file for files in found for file in files][:MAX_NAMED_FILES]


def _files_of(services: Services, row: ManifestRow) -> list[UnreadableFile]:
    assert row.published is not None
    key = result_key(row.id, row.published.generation)
    try:
        result = json.loads(get_document(services.s3, services.resources.control_bucket, key))
    except InvalidDocumentError:
        return []
    sources = [source for source in result["sources"] if source["failed"]]
    return [UnreadableFile(item["uri"], item["version"], row.id, item["failed"]) for item in sources]
