"""Documents of resubmissions: which rejected lines a person gives back, repaired, to the hour that they came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lake.documents import encode_document, get_document
from lake.errors import InvalidDocumentError
from lake.layout import resubmission_key
from lake.partition import Partition

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import ResubmissionRow

RESUBMISSION_FORMAT = 1
"""Version of the document's format."""
MAX_LINES = 100_000
"""Maximum number of lines in one resubmission: their offsets are compared in the memory of a function."""


@dataclass(frozen=True, slots=True)
class RejectedLines:
    """Rejected lines of one file."""

    source: str
    """URI of the input file."""
    version: str
    manifest: str
    """The manifest that has rejected them, in this generation."""
    generation: int
    offsets: tuple[int, ...]
    """First byte of each line, in the decompressed file where it is compressed."""

    def identities(self) -> Iterator[tuple[str, str, int]]:
        """What names each line, whichever generation has rejected it."""
        return ((self.source, self.version, offset) for offset in self.offsets)


@dataclass(frozen=True, slots=True)
class Resubmission:
    """The rejected lines of one hour that one file of repaired lines replaces."""

    name: str
    partition: Partition
    rejected: tuple[RejectedLines, ...]

    @property
    def lines(self) -> int:
        """Number of lines."""
        return sum(len(item.offsets) for item in self.rejected)

    def identities(self) -> Iterator[tuple[str, str, int]]:
        """What names each of the lines."""
        return (identity for item in self.rejected for identity in item.identities())


def encode_resubmission(resubmission: Resubmission) -> bytes:
    """The bytes of the document on S3."""
    return encode_document({"format": RESUBMISSION_FORMAT, **asdict(resubmission)})


def decode_resubmission(body: bytes) -> Resubmission:
    """Inverse of ``encode_resubmission``. Raises ``InvalidDocumentError``."""
    try:
        data: dict[str, Any] = json.loads(body)
        if data["format"] != RESUBMISSION_FORMAT:
            raise ValueError(f"its format is not {RESUBMISSION_FORMAT}")
        rejected = tuple(RejectedLines(**{**item, "offsets": tuple(item["offsets"])}) for item in data["rejected"])
        return Resubmission(data["name"], Partition(**data["partition"]), rejected)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidDocumentError(
            f"the body is not a valid resubmission ({error}): run 'hybrid-router quarantine retry <file>' again"
        ) from error


def read_resubmission(s3: S3Client, control_bucket: str, row: ResubmissionRow) -> Resubmission:
    """Get the document that a row of the ledger is bound to.

    Raises
    ------
    InvalidDocumentError
        It is gone, or was changed after it was recorded.
    """
    key = resubmission_key(row.name)
    body = get_document(s3, control_bucket, key)
    if hashlib.sha256(body).hexdigest() != row.document_sha256:
        raise InvalidDocumentError(
            f"s3://{control_bucket}/{key} was changed after the ledger recorded it, so it is not known which lines it "
            "holds: restore the object (protection.versions keeps earlier versions)"
        )
    return decode_resubmission(body)
