"""DynamoDB: BatchGetItem returns at most 16 MB, and names the keys of the rest; other sizes the emulator enforces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ministack.services import dynamodb  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from local.emulator_patches import EmulatorValue

MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html"""


def patch() -> None:
    """Apply the patch of this file."""
    original = dynamodb._batch_get_item

    def batch_get_item(data: dict[str, Any]) -> EmulatorValue:
        answer = original(data)
        if answer[0] != 200:
            return answer
        served, unprocessed = _split(data["RequestItems"])
        if not unprocessed:
            return answer
        status, headers, body = original({**data, "RequestItems": served})
        return status, headers, json.dumps({**json.loads(body), "UnprocessedKeys": unprocessed}).encode()

    dynamodb._batch_get_item = batch_get_item


def _split(requests: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The requests whose items have room, in their order, and the others; whole items count, whatever is projected."""
    served: dict[str, Any] = {}
    unprocessed: dict[str, Any] = {}
    room = MAX_BATCH_BYTES
    for name, request in requests.items():
        table = dynamodb._tables[dynamodb._normalize_table_name(name)]
        for key in request["Keys"]:
            partition, sort, _ = dynamodb._resolve_table_key_values(table, key, allow_extra=False)
            item = table["items"].get(partition, {}).get(sort)
            room -= dynamodb._item_size_bytes(item) if item else 0
            target = served if room >= 0 else unprocessed
            target.setdefault(name, {**request, "Keys": []})["Keys"].append(key)
    return served, unprocessed
