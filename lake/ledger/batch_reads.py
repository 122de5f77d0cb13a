"""Consistent reads of many items: one request for up to 100 of them."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from lake.counted import format_count
from lake.errors import TransientError
from lake.ledger.conflicts import FIRST_WAIT_SECONDS, MAX_TRIES, MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

K = TypeVar("K")

MAX_BATCH_KEYS = 100
"""DynamoDB's limit on the keys of one BatchGetItem (its "Service quotas")."""


def batches_of(keys: Iterable[K], size: int = MAX_BATCH_KEYS) -> Iterator[list[K]]:
    """The keys in lists of at most ``size``, in order; only one list is in memory."""
    waiting = iter(keys)
    while batch := list(islice(waiting, size)):
        yield batch


def read_batch(
    client: DynamoDBClient, table: str, keys: Sequence[dict[str, str]], wait: Callable[[float], object]
) -> list[dict[str, Any]]:
    """The items of these keys that exist, in any order; keys that DynamoDB leaves unprocessed are asked for again.

    It leaves some where the answer would have more than 16 MB, or where the table has no capacity for all of them.

    Raises
    ------
    TransientError
        It has processed none of the remaining keys ``MAX_TRIES`` times in succession.
    """
    found: list[dict[str, Any]] = []
    remaining, tries = list(keys), 0
    while remaining:
        answer = client.batch_get_item(RequestItems={table: {"Keys": remaining, "ConsistentRead": True}})
        page = answer["Responses"].get(table, [])
        found += page
        unprocessed: Any = answer.get("UnprocessedKeys", {})
        remaining = unprocessed[table]["Keys"] if table in unprocessed else []
        tries = 0 if page else tries + 1
        if tries == MAX_TRIES:
            raise TransientError(
                f"DynamoDB has read none of {format_count(len(remaining), 'row')} of table {table} in {MAX_TRIES} "
                "tries: this passes; try it again"
            )
        if remaining:
            wait(min(FIRST_WAIT_SECONDS * (1 << tries), MAX_WAIT_SECONDS) * random.uniform(0.5, 1))  # noqa: S311
    return found
