"""Files that an attempt could not read to their end: the next attempt leaves them out and quarantines them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lake.documents import encode_document, get_document, put_document
from lake.errors import InvalidDocumentError
from lake.layout import exclusions_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import ManifestRow
    from lake.manifest import Manifest, ObjectVersion


def write_exclusions(s3: S3Client, control_bucket: str, row: ManifestRow, excluded: Mapping[ObjectVersion, str]) -> str:
    """Put the document under a key that was never used before, which is returned for the ledger row."""
    key = exclusions_key(row.id, row.generation, row.attempt, secrets.token_hex(4))
    body = [{"uri": file.uri, "version": file.version, "reason": reason} for file, reason in excluded.items()]
    put_document(s3, control_bucket, key, encode_document(body))
    return key


def read_exclusions(s3: S3Client, control_bucket: str, key: str | None, manifest: Manifest) -> dict[ObjectVersion, str]:
    """The files of the manifest that its row excludes, with their reasons.

    Raises
    ------
    InvalidDocumentError
        The document is gone, or is not a list that ``write_exclusions`` wrote.
    """
    if key is None:
        return {}
    body = get_document(s3, control_bucket, key)
    try:
        reasons = {(item["uri"], item["version"]): str(item["reason"]) for item in json.loads(body)}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidDocumentError(f"{key} is not a valid list of excluded files ({error})") from error
    return {file: reasons[(file.uri, file.version)] for file in manifest.files if (file.uri, file.version) in reasons}
