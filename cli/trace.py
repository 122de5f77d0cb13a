"""Where is my file? An arrival followed through the ledger to its published rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidDocumentError
from lake.layout import result_key
from lake.ledger import State
from lake.manifest import read_manifest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import ArrivalRow, Ledger, ManifestRow
    from lake.manifest import ObjectVersion
    from lake.places import Places


@dataclass(frozen=True, slots=True)
class Trace:
    """One object version, its lane, its manifests and what came of it."""

    arrival: ArrivalRow
    chain: tuple[ManifestRow, ...]
    """The manifest that took it first, then those it was dissolved into; the last one holds it now."""
    result: dict[str, Any] | None
    """Result document of the published generation; None while nothing is published."""

    @property
    def state(self) -> str:
        """State of the manifest that holds it now, or IGNORED."""
        return self.chain[-1].state if self.chain else "IGNORED"

    @property
    def source(self) -> dict[str, Any] | None:
        """The file's own counts in the result document."""
        if self.result is None:
            return None
        wanted = (self.arrival.file.uri, self.arrival.file.version)
        sources = (item for item in self.result["sources"] if (item["uri"], item["version"]) == wanted)
        return next(sources, None)


def trace(s3: S3Client, ledger: Ledger, places: Places, arrival: ArrivalRow) -> Trace:
    """Follow an arrival through ``DISSOLVED(into ...)`` to the manifest that holds it now."""
    chain: list[ManifestRow] = []
    manifest = arrival.manifest
    while manifest is not None:
        row = ledger.manifests.get(manifest)
        if row is None:
            break
        chain.append(row)
        manifest = _holder(s3, places, row, arrival.file) if row.state == State.DISSOLVED else None
    result = None
    if chain and chain[-1].published is not None:
        key = result_key(chain[-1].id, chain[-1].published.generation)
        result = json.loads(s3.get_object(Bucket=places.control_bucket, Key=key)["Body"].read())
    return Trace(arrival, tuple(chain), result)


def _holder(s3: S3Client, places: Places, row: ManifestRow, file: ObjectVersion) -> str:
    for successor in row.dissolved_into:
        manifest = read_manifest(s3, places.control_bucket, successor, {places.input_bucket})
        if any((item.key, item.version) == (file.key, file.version) for item in manifest.files):
            return successor
    raise InvalidDocumentError(
        f"{file.uri} is in none of the manifests that {row.id} was dissolved into: report this, it must not happen"
    )
