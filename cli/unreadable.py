"""The files of a DONE manifest that could not be read, by its result document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cli.trace import trace_arrival
from lake.documents import get_document
from lake.layout import result_key
from lake.ledger import State
from router.s3_uri import parse_s3_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cli.deployed_stack import DeployedStack
    from lake.ledger import ManifestRow


def read_unreadable(stack: DeployedStack, row: ManifestRow) -> Iterator[dict[str, Any]]:
    """The sources of the result document that have failed.

    Raises ``InvalidDocumentError`` where one is gone, and botocore's errors.
    """
    if row.published is None:
        return
    result = _read(stack, result_key(row.id, row.published.generation))
    yield from (source for source in result["sources"] if source["failed"])


def find_replacement(stack: DeployedStack, file: Mapping[str, Any]) -> str | None:
    """The manifest that has converted a later version of a file from ``read_unreadable``; None: there is none yet.

    Raises ``InvalidDocumentError`` where a document is gone, and botocore's errors.
    """
    name = parse_s3_uri(file["uri"])
    versions = stack.ledger.arrivals.versions(name.bucket, name.key)
    own = next((row.file.arrived_at for row in versions if row.file.version == file["version"]), None)
    for row in versions:
        if own is not None and row.file.arrived_at > own:
            trace = trace_arrival(stack.s3, stack.ledger, stack.resources, row)
            if trace.state == State.DONE and trace.source is not None and not trace.source["failed"]:
                return trace.manifests[-1].id
    return None


def _read(stack: DeployedStack, key: str) -> Any:  # noqa: ANN401
    return json.loads(get_document(stack.s3, stack.resources.control_bucket, key))
