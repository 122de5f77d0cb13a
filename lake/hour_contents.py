"""Reads what the manifests of an hour are: those that the ledger lists for it, and their successors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.hours import HourContents
from lake.ledger.table import batches_of

if TYPE_CHECKING:
    from lake.ledger import Ledger
    from lake.partition import Partition


def read_hour(ledger: Ledger, partition: Partition, *, until_waiting: bool = False) -> HourContents:
    """The contents of an hour by consistent reads, 100 manifests to a request; raises botocore's errors.

    The newest manifests come first, because they are converted last. ``until_waiting`` stops at the first one that the
    hour waits for: the counts are not complete then.
    """
    contents = HourContents()
    level = sorted(ledger.partitions.manifests(partition), reverse=True)
    seen = set(level)
    while level:
        successors: set[str] = set()
        for batch in batches_of(level):
            for manifest, row in zip(batch, ledger.manifests.get_many(batch), strict=True):
                contents.add(manifest, row)
                successors.update(() if row is None else row.superseded_by)
            if until_waiting and contents.waits_for is not None:
                return contents
        level = sorted(successors - seen, reverse=True)
        seen |= successors
    return contents
