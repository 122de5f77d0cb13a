"""Along SUPERSEDED(by ...): which of its successors holds a file of a superseded manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.errors import InvalidDocumentError
from lake.manifest import Identity, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mypy_boto3_s3 import S3Client

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from lake.resource_names import ResourceNames


def holders(
    s3: S3Client, resources: ResourceNames, row: ManifestRow, files: Iterable[ObjectVersion]
) -> dict[str, set[ObjectVersion]]:
    """The files by the successor of the superseded ``row`` that lists them; documents are read until all are found.

    Raises
    ------
    InvalidDocumentError
        No successor lists one of them.
    """
    wanted = {Identity.of(file): file for file in files}
    found: dict[str, set[ObjectVersion]] = {}
    for successor in row.superseded_by:
        if not wanted:
            break
        manifest = read_manifest(s3, resources.control_bucket, successor, (resources.input_bucket,))
        held = {wanted.pop(Identity.of(file)) for file in manifest.files if Identity.of(file) in wanted}
        if held:
            found[successor] = held
    for file in wanted.values():
        raise InvalidDocumentError(
            f"{file.uri} is in none of the manifests that {row.id} was superseded by: report this, it must not happen"
        )
    return found
