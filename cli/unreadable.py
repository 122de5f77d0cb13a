"""The files of a DONE manifest that could not be read, by its result document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lake.documents import get_document
from lake.layout import result_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.deployed_stack import DeployedStack
    from lake.ledger import ManifestRow


def read_unreadable(stack: DeployedStack, row: ManifestRow) -> Iterator[dict[str, Any]]:
    """The sources of the result document that have failed, without those that were put again and have another manifest.

    Raises ``InvalidDocumentError`` where one is gone, and botocore's errors.
    """
    if row.published is None:
        return
    left = {(item["uri"], item["version"]) for item in _read(stack, row.relinquished)}
    result = _read(stack, result_key(row.id, row.published.generation))
    for source in result["sources"]:
        if source["failed"] and (source["uri"], source["version"]) not in left:
            yield source


def _read(stack: DeployedStack, key: str | None) -> Any:  # noqa: ANN401
    if key is None:
        return []
    return json.loads(get_document(stack.s3, stack.resources.control_bucket, key))
