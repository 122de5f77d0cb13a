"""Whether the input of a manifest is still there: what a dry run of a reprocess looks at first."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lake.commit import read_commit
from lake.counted import format_count
from lake.errors import UnusableDocumentError
from lake.manifest import UNVERSIONED, Manifest, ObjectVersion
from lake.manifest_document import read_manifest

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from router.services import Services

MAX_LOOKS = 2_000
"""Maximum number of files that one invocation looks at: each is a request, and 32 of them run at the same time."""


class InputLook:
    """Looks at input files by listing their versions, which needs no right to read them."""

    def __init__(self, services: Services, pool: ThreadPoolExecutor) -> None:
        self._services = services
        self._pool = pool
        self._looks = 0

    def describe(self, row: ManifestRow) -> str | None:
        """What is gone of the manifest's input, and what a reprocess then does; None if all of it is there."""
        if self._looks + row.files > MAX_LOOKS:
            return "its files were not looked at: name fewer manifests to have that done"
        self._looks += row.files
        services = self._services
        try:
            manifest = read_manifest(
                services.s3, services.resources.control_bucket, row, services.resources.file_buckets
            )
            there = self._pool.map(self._is_there, manifest.files)
            gone = {file for file, is_there in zip(manifest.files, there, strict=True) if not is_there}
            if not gone:
                return None
            files = format_count(len(gone), "of its files is gone", "of its files are gone")
            return f"{files} (first: {min(gone).uri}){self._consequence(row, manifest, gone)}"
        except UnusableDocumentError as error:
            return f"it cannot be converted: {error}"

    def _consequence(self, row: ManifestRow, manifest: Manifest, gone: Collection[ObjectVersion]) -> str:
        if row.published is None:
            return ", and would be in the quarantine by reference"
        document = read_commit(self._services.s3, self._services.resources.control_bucket, row.published.document)
        unread = {(source.uri, source.version) for source in document.sources if source.failed is not None}
        if all((file.uri, file.version) in unread for file in gone):
            return ", and would stay in the quarantine by reference"
        new = [file for file in manifest.files if (file.uri, file.version) in unread and file not in gone]
        if not new:
            return ": it would be DONE again with what it has published, and nothing would change"
        converted = format_count(len(new), "file that was not readable", "files that were not readable")
        return f": what it has published would stay, and {converted} would be converted"

    def _is_there(self, file: ObjectVersion) -> bool:
        """Whether this version of the object exists."""
        markers: dict[str, str] = {}
        while True:
            page = self._services.s3.list_object_versions(Bucket=file.bucket, Prefix=file.key, **markers)  # type: ignore[arg-type]
            for item in page.get("Versions", []):
                if item["Key"] == file.key and _is_version(file, item["VersionId"], item["ETag"].strip('"')):
                    return True
            # A key is listed before its extensions.
            if not page["IsTruncated"] or page["NextKeyMarker"] != file.key:
                return False
            markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}


def _is_version(file: ObjectVersion, version_id: str, etag: str) -> bool:
    if file.version_id is not None:
        return file.version_id == version_id
    return version_id == UNVERSIONED and file.etag == etag
