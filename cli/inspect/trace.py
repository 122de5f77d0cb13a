"""Follows a file through the ledger to its manifests, its result, and its first rejected line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import ClientError

from lake.aws_types import S3Client
from lake.commit import GenerationResult, PendingObject, SourceCount, read_result
from lake.ledger import ArrivalRow, Ledger, ManifestRow, State
from lake.resource_names import ResourceNames
from lake.successors import files_by_successor


@dataclass(frozen=True, slots=True)
class Trace:
    arrival: ArrivalRow
    manifests: tuple[ManifestRow, ...]
    """The first manifest of the file and its successors, oldest first; the last one is its current manifest.

    Empty if its owner has written none yet. Before the collection of a file is divided, it has the part's row."""
    result: GenerationResult | None
    """The result document of the published generation; None while nothing is published."""

    @property
    def state(self) -> str:
        """The state of the current manifest; RECORDED if the file has none yet, IGNORED if it gets none."""
        if self.manifests:
            return self.manifests[-1].state
        return "IGNORED" if self.arrival.manifest is None else "RECORDED"

    @property
    def source(self) -> SourceCount | None:
        """The file's own counts in the result document; None while nothing is published."""
        if self.result is None:
            return None
        own = (self.arrival.file.uri, self.arrival.file.version)
        sources = (item for item in self.result.sources if (item.uri, item.version) == own)
        return next(sources, None)


def trace_arrival(s3: S3Client, ledger: Ledger, resources: ResourceNames, arrival: ArrivalRow) -> Trace:
    """Follow an arrival from its first manifest to its current one, through every superseded manifest.

    Raises ``InvalidDocumentError`` if a document is gone or damaged.
    """
    manifests: list[ManifestRow] = []
    manifest_id = arrival.manifest
    while manifest_id is not None:
        row = ledger.manifests.get(manifest_id)
        if row is None or row.state == State.ABANDONED:
            break
        manifests.append(row)
        moved = row.state == State.SUPERSEDED or row.collection is not None
        held = files_by_successor(s3, ledger, resources, row, [arrival.file]) if moved else {}
        manifest_id = next(iter(held), None)
        if row.collection is not None and manifest_id is not None:
            manifests.clear()
    result = None
    if manifests and manifests[-1].published is not None:
        generation = manifests[-1].published.generation
        result = read_result(s3, resources.control_bucket, manifests[-1].id, generation)
    return Trace(arrival, tuple(manifests), result)


MAX_OBJECTS, MAX_BYTES = 8, 262_144
"""Maximum number of quarantine objects that are read, and of bytes read of each object."""
MAX_LINE_CHARACTERS = 200


def read_rejected_line(s3: S3Client, bucket: str, objects: Sequence[PendingObject], source: SourceCount) -> str | None:
    """Return the beginning of a source's first rejected line.

    None if there is none, or if it is not text or not in the first ``MAX_BYTES`` of an object that can be read.
    """
    for item in objects[:MAX_OBJECTS] if source.first_reject else ():
        try:
            body = s3.get_object(Bucket=bucket, Key=item.key, Range=f"bytes=0-{MAX_BYTES - 1}")["Body"].read()
            for record in map(json.loads, body[: body.rfind(b"\n") + 1].splitlines()):
                place = (record["source"], record["version"], f"{record['reason']} at byte {record['offset']}")
                if "line" in record and place == (source.uri, source.version, source.first_reject):
                    return str(record["line"])[:MAX_LINE_CHARACTERS]
        except (ClientError, ValueError, KeyError, TypeError):
            # Access to the object is denied, or it is gone or damaged.
            continue
    return None
