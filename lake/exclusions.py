"""What an attempt could not read: files that the next one leaves out, manifests that no further job run tries."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lake.documents import encode_document, find_document, get_document, put_document
from lake.errors import InvalidDocumentError
from lake.layout import denial_key, exclusions_key
from lake.s3_uri import parse_s3_uri

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


BLOCKED_RUN = re.compile(r"run \S+ does not begin: (.*); the manifests wait, none has used up an attempt")


def format_blocked_run(run: str, fault: str) -> str:
    """What a job run reports that the environment does not let work."""
    return f"run {run} does not begin: {fault}; the manifests wait, none has used up an attempt"


def fault_of_blocked_run(text: str) -> str | None:
    """The fault that ``format_blocked_run`` has put into the text of a failed job run; None: it failed otherwise."""
    found = BLOCKED_RUN.search(text)
    return found[1] if found else None


def read_denied(s3: S3Client, control_bucket: str, run: str) -> frozenset[str]:
    """Ids of the manifests that the job runs of the run document at this URI were denied. Raises botocore's errors."""
    found = find_document(s3, control_bucket, _key(run))
    return frozenset(map(str, found["manifests"])) if found is not None else frozenset()


def write_denied(s3: S3Client, control_bucket: str, run: str, manifests: Iterable[str]) -> None:
    """Replace the list: the job runs of a run document follow one another. Raises botocore's errors."""
    put_document(s3, control_bucket, _key(run), encode_document({"manifests": sorted(manifests)}))


def _key(run: str) -> str:
    return denial_key(parse_s3_uri(run).key)
