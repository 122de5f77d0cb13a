"""Documents of resubmissions: which rejected lines a person gives back, repaired, to the hour that they came from."""

from collections.abc import Iterator
from dataclasses import dataclass

from lake.aws_types import S3Client
from lake.documents import decode_body, get_bound_document
from lake.layout import resubmission_key
from lake.ledger import ResubmissionRow
from lake.manifest import Partition

MAX_LINES = 100_000
"""Maximum number of lines in one resubmission: their offsets are compared in the memory of a function."""


@dataclass(frozen=True, slots=True)
class RejectedLines:
    source: str
    """URI of the input file."""
    version: str
    manifest: str
    """The manifest that has rejected them, in this generation."""
    generation: int
    offsets: tuple[int, ...]
    """First byte of each line, in the decompressed file where it is compressed."""

    def identities(self) -> Iterator[tuple[str, str, int]]:
        return ((self.source, self.version, offset) for offset in self.offsets)


@dataclass(frozen=True, slots=True)
class Resubmission:
    name: str
    partition: Partition
    rejected: tuple[RejectedLines, ...]

    @property
    def lines(self) -> int:
        return sum(len(item.offsets) for item in self.rejected)

    def identities(self) -> Iterator[tuple[str, str, int]]:
        return (identity for item in self.rejected for identity in item.identities())


def read_resubmission(s3: S3Client, control_bucket: str, row: ResubmissionRow) -> Resubmission:
    """Get the document that a row of the ledger is bound to. Raises ``UnusableDocumentError``."""
    body = get_bound_document(s3, control_bucket, resubmission_key(row.name), row.document_sha256)
    return decode_body(Resubmission, body, "resubmission")
