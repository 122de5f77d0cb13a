"""Documents that rows of the ledger bind by their SHA-256: manifests, parts, divisions, resubmissions.

Also lists of what could not be read: files that the next attempt excludes, and manifests that a run was denied.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lake.aws_types import S3Client
from lake.commit import put_bound_document
from lake.documents import (
    decode_body,
    encode,
    encode_body,
    encode_document,
    find_document,
    get_bound_document,
    get_document,
    put_document,
    refuse_cut,
)
from lake.errors import InvalidDocumentError
from lake.layout import denial_key, division_key, exclusions_key, manifest_key, parse_s3_uri, part_key, resubmission_key
from lake.ledger import CollectionId, CommitReference, Ledger, ManifestRow, Part, ResubmissionRow
from lake.ledger.manifest_row import queued_row
from lake.manifest import Manifest, ObjectVersion, Partition, check_buckets, decode_manifest


def write_manifest(s3: S3Client, control_bucket: str, manifest: Manifest) -> ManifestRow:
    """Put the document; returns the first row, which binds it. Ids are unique, so only one invocation writes it."""
    body = encode_body(manifest)
    put_document(s3, control_bucket, manifest_key(manifest.id), body)
    return queued_row(manifest, hashlib.sha256(body).hexdigest())


def read_manifest(s3: S3Client, control_bucket: str, row: ManifestRow, allowed_buckets: Collection[str]) -> Manifest:
    """Get the document that a manifest's ledger row binds. Raises ``UnusableDocumentError``."""
    body = get_bound_document(s3, control_bucket, manifest_key(row.id), row.manifest_sha256)
    return decode_manifest(body, allowed_buckets)


@dataclass(frozen=True, slots=True)
class PartDocument:
    id: str
    hour: str
    buckets: tuple[str, ...]
    files: dict[str, str]


def new_part(part: str, hour: str, created_at: str, files: Mapping[str, Sequence[ObjectVersion]]) -> tuple[Part, bytes]:
    """A part of ``files``, grouped by dataset, and the bytes of its document; ``created_at`` is ISO 8601, UTC.

    The document has the files of each dataset as one text: a division holds the texts of all files of an hour, but
    decodes the files of only a few manifests at a time.
    """
    texts = {dataset: encode_document(encode(sorted(files[dataset]))).decode() for dataset in sorted(files)}
    every = [file for found in files.values() for file in found]
    buckets = sorted({file.bucket for file in every})
    body = encode_body(PartDocument(part, hour, tuple(buckets), texts))
    sha256 = hashlib.sha256(body).hexdigest()
    return Part(part, hour, created_at, len(every), sum(file.size for file in every), sha256, tuple(texts)), body


def write_part(s3: S3Client, control_bucket: str, part: Part, body: bytes) -> None:
    """Put the document of ``new_part``. Ids are unique, so only one invocation writes it."""
    put_document(s3, control_bucket, part_key(part.id), body)


def read_part(s3: S3Client, control_bucket: str, part: Part, allowed_buckets: Collection[str]) -> dict[str, str]:
    """The files of a part by dataset, as texts for ``decode_files``. Raises ``UnusableDocumentError``."""
    text = get_bound_document(s3, control_bucket, part_key(part.id), part.sha256)
    document = decode_body(PartDocument, text, "part")
    check_buckets(document.buckets, allowed_buckets, f"part {part.id}")
    return document.files


def decode_files(texts: Iterable[str]) -> list[list[ObjectVersion]]:
    """The files of one dataset in some parts: one sorted list for each part."""
    # All in one call: a text often has one file, and a call takes longer than a file.
    return [[ObjectVersion(*item) for item in items] for items in json.loads(f"[{','.join(texts)}]")]


@dataclass(frozen=True, slots=True)
class Division:
    """The manifests that a collection became, with all that is needed to carry out the division."""

    collection: CollectionId
    parts: tuple[str, ...]
    """Ids of the parts whose files are in the manifests, oldest first."""
    apart: tuple[Part, ...]
    """Parts with a damaged document, which are set apart: each gets a collection of its own."""
    manifests: tuple[ManifestRow, ...]
    """The first row of each manifest."""
    spans: tuple[tuple[int, int], ...]
    """For each manifest the numbers of the first and the last part with its files, in the order of ``parts``."""

    def holders(self, part: str, dataset: str) -> list[str]:
        """Ids of the manifests that can have files of this dataset from this part."""
        number = self.parts.index(part)
        found = zip(self.manifests, self.spans, strict=True)
        return [row.id for row, (first, last) in found if row.partition.dataset == dataset and first <= number <= last]


def write_division(s3: S3Client, control_bucket: str, division: Division, nonce: str) -> CommitReference:
    """Put a division document under a key that was never used before; returns the reference for the ledger."""
    return put_bound_document(s3, control_bucket, division_key(str(division.collection), nonce), division)


@lru_cache(maxsize=4)
def read_division(s3: S3Client, control_bucket: str, reference: CommitReference) -> Division:
    """Get a division document that the ledger names. Raises ``UnusableDocumentError``."""
    body = get_bound_document(s3, control_bucket, reference.key, reference.sha256)
    return decode_body(Division, body, "division")


def find_division(s3: S3Client, ledger: Ledger, control_bucket: str, row: ManifestRow) -> Division | None:
    """The division with the files of a part, which ``row`` describes; None if the part is not divided.

    Raises ``UnusableDocumentError``.
    """
    assert row.collection is not None
    collection = CollectionId.parse(row.collection)
    for candidate in (collection, CollectionId(collection.hour, row.id)):
        found = ledger.collections.get(candidate)
        if found is None or found.division is None:
            return None
        division = read_division(s3, control_bucket, found.division)
        if row.id in division.parts:
            return division
    return None


def write_exclusions(s3: S3Client, control_bucket: str, row: ManifestRow, excluded: Mapping[ObjectVersion, str]) -> str:
    """Put the document under a new key; returns the key for the ledger row."""
    key = exclusions_key(row.id, row.generation, row.attempt, secrets.token_hex(4))
    body = [{"uri": file.uri, "version": file.version, "reason": reason} for file, reason in excluded.items()]
    put_document(s3, control_bucket, key, encode_document(body))
    return key


def read_exclusions(s3: S3Client, control_bucket: str, key: str | None, manifest: Manifest) -> dict[ObjectVersion, str]:
    """The files that a manifest's row excludes, with their reasons.

    Raises ``InvalidDocumentError`` if the document is gone, or is not a list by ``write_exclusions``.
    """
    if key is None:
        return {}
    body = get_document(s3, control_bucket, key)
    try:
        reasons = {(item["uri"], item["version"]): str(item["reason"]) for item in json.loads(body)}
    except (ValueError, KeyError, TypeError) as error:
        refuse_cut(s3, control_bucket, key, len(body))
        raise InvalidDocumentError(f"{key} is not a valid list of excluded files ({error})") from error
    return {file: reasons[(file.uri, file.version)] for file in manifest.files if (file.uri, file.version) in reasons}


BLOCKED_RUN = re.compile(r"run \S+ cannot start: (.*); its manifests wait, no attempt was used up")


def format_blocked_run(run: str, fault: str) -> str:
    return f"run {run} cannot start: {fault}; its manifests wait, no attempt was used up"


def fault_of_blocked_run(text: str) -> str | None:
    """The fault in a failed job run's text that ``format_blocked_run`` wrote; None if it failed for another reason."""
    found = BLOCKED_RUN.search(text)
    return found[1] if found else None


def read_denied(s3: S3Client, control_bucket: str, run: str) -> frozenset[str]:
    """Ids of the manifests that the job runs of a run document, given by its URI, were denied.

    Raises ``InvalidDocumentError`` if the list is damaged; botocore's errors.
    """
    found = find_document(s3, control_bucket, _key(run), "manifests")
    return frozenset(map(str, found["manifests"])) if found is not None else frozenset()


def write_denied(s3: S3Client, control_bucket: str, run: str, manifests: Iterable[str]) -> None:
    """Replace the list; nothing else writes it, as a run's job runs follow one another. Raises botocore's errors."""
    put_document(s3, control_bucket, _key(run), encode_document({"manifests": sorted(manifests)}))


def _key(run: str) -> str:
    return denial_key(parse_s3_uri(run).key)


MAX_LINES = 100_000
"""Maximum number of lines in one resubmission: their offsets are compared in the memory of a function."""


@dataclass(frozen=True, slots=True)
class RejectedLines:
    source: str
    """URI of the input file."""
    version: str
    manifest: str
    """Id of the manifest that rejected the lines, in ``generation``."""
    generation: int
    offsets: tuple[int, ...]
    """First byte of each line; in a compressed file, its offset in the decompressed bytes."""

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
    """Get the document that a row of the ledger binds. Raises ``UnusableDocumentError``."""
    body = get_bound_document(s3, control_bucket, resubmission_key(row.name), row.document_sha256)
    return decode_body(Resubmission, body, "resubmission")
