"""From a superseded manifest to the successors that hold its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError
from lake.manifest import Identity
from lake.manifest_document import read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mypy_boto3_s3 import S3Client

    from lake.ledger import Ledger, ManifestRow
    from lake.manifest import ObjectVersion
    from lake.resource_names import ResourceNames


def files_by_successor(
    s3: S3Client, ledger: Ledger, resources: ResourceNames, row: ManifestRow, files: Iterable[ObjectVersion]
) -> dict[str, set[ObjectVersion]]:
    """``files`` grouped by the successor of ``row`` that lists them; reads documents until all files are found.

    Raises
    ------
    InvalidDocumentError
        A file is in none of the successors, or the document of one is not the recorded one.
    """
    remaining = {Identity.of(file): file for file in files}
    found: dict[str, set[ObjectVersion]] = {}
    for successor in row.superseded_by:
        if not remaining:
            break
        current = ledger.manifests.get(successor)
        if current is None:
            raise InvalidDocumentError(
                f"the ledger has no manifest {successor}, which superseded {row.id}: this is a defect, report it"
            )
        manifest = read_manifest(s3, resources.control_bucket, current, resources.file_buckets)
        held = {remaining.pop(Identity.of(file)) for file in manifest.files if Identity.of(file) in remaining}
        if held:
            found[successor] = held
    for file in remaining.values():
        raise InvalidDocumentError(
            f"{file.uri} is in none of the manifests that superseded {row.id}: this is a defect, report it"
        )
    return found
