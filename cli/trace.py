"""Where is my file? An arrival followed through the ledger to its published rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.layout import result_key
from lake.ledger import State
from lake.successors import files_by_successor

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import ArrivalRow, Ledger, ManifestRow
    from lake.resource_names import ResourceNames


@dataclass(frozen=True, slots=True)
class Trace:
    """One object version, its lane, its manifests and what came of it."""

    arrival: ArrivalRow
    chain: tuple[ManifestRow, ...]
    """The manifest that took it first, then those it was superseded by; the last one holds it now."""
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


def trace(s3: S3Client, ledger: Ledger, resources: ResourceNames, arrival: ArrivalRow) -> Trace:
    """Follow an arrival through ``SUPERSEDED(by ...)`` to the manifest that holds it now."""
    chain: list[ManifestRow] = []
    manifest = arrival.manifest
    while manifest is not None:
        row = ledger.manifests.get(manifest)
        if row is None:
            break
        chain.append(row)
        superseded = row.state == State.SUPERSEDED
        manifest = next(iter(files_by_successor(s3, resources, row, [arrival.file]))) if superseded else None
    result = None
    if chain and chain[-1].published is not None:
        key = result_key(chain[-1].id, chain[-1].published.generation)
        result = json.loads(s3.get_object(Bucket=resources.control_bucket, Key=key)["Body"].read())
    return Trace(arrival, tuple(chain), result)
