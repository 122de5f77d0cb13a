"""Whether it is the ledger that a process fails at: its table refuses the process, or has too much load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from lake.faults import CONFLICT_CODE, CONFLICT_REASON, Fault, cancellation_reasons, error_code, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATIONS = frozenset({"BatchGetItem", "GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem"})
"""What the ledger asks its table for; no other service that the project calls has an operation of these names."""


def is_refused_by_ledger(error: BaseException) -> bool:
    """Whether the error, or one that it was raised from, is an answer of the table that a person has to end. Pure.

    A missing permission, key or table, and throttling that lasted longer than the client's own attempts. Not a
    condition that did not hold, nor a transaction that met another one: these are the protocol at work.
    """
    return any(_is_refusal(item) for item in _chain(error))


def _is_refusal(error: BaseException) -> bool:
    if not isinstance(error, ClientError) or error.operation_name not in OPERATIONS:
        return False
    in_conflict = error_code(error) == CONFLICT_CODE or CONFLICT_REASON in cancellation_reasons(error)
    return judge(error) == Fault.ENVIRONMENT and not in_conflict


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
