"""Writes that met a transaction on the same item: DynamoDB refuses them without a change, and they are repeated."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import ClientError

from lake.faults import CANCELLED, CONFLICT_CODE, Fault, error_code, judge

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_TRIES = 8
FIRST_WAIT_SECONDS = 0.05
MAX_WAIT_SECONDS = 2.0
"""A transaction of 100 items takes well below a second; all waits together are at most 6 seconds."""


def repeat_conflicts(write: Callable[[], T], wait: Callable[[float], object]) -> T:
    """Call ``write``, again after each conflict, at most ``MAX_TRIES`` times; returns what it returns.

    The clients repeat throttled requests, but not those that met a transaction, nor cancelled transactions.

    Raises
    ------
    ClientError
        What the last try raised, or any other error.
    """
    for number in range(MAX_TRIES - 1):
        try:
            return write()
        except ClientError as error:
            if not _is_conflict(error):
                raise
        # Random, because the writers that met each other would meet again.
        wait(min(FIRST_WAIT_SECONDS * (1 << number), MAX_WAIT_SECONDS) * random.uniform(0.5, 1))  # noqa: S311
    return write()


def _is_conflict(error: ClientError) -> bool:
    return error_code(error) in (CANCELLED, CONFLICT_CODE) and judge(error) == Fault.ENVIRONMENT
