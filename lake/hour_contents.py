"""Reads what the manifests of an hour are: those that the ledger lists for it, and their successors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.hours import HourContents
from lake.successors import follow

if TYPE_CHECKING:
    from lake.ledger import Ledger
    from lake.partition import Partition


def read_hour(ledger: Ledger, partition: Partition, *, has_table: bool, until_waiting: bool = False) -> HourContents:
    """The contents of an hour by consistent reads, 100 manifests to a request; raises botocore's errors.

    A collection of the hour that is not divided counts as one open manifest. The newest manifests come first, because
    they are converted last. ``until_waiting`` stops at the first one that the hour waits for: the counts are not
    complete then. ``has_table``: a published manifest that the Iceberg table of the dataset does not show is waited
    for.
    """
    contents = HourContents(has_table=has_table)
    for collection in ledger.collections.of_hour(partition.stamp):
        if not collection.done:
            contents.add(str(collection.id), None)
    if until_waiting and contents.waits_for is not None:
        return contents
    newest_first = sorted(ledger.partitions.manifests(partition), reverse=True)
    for page in follow(ledger, newest_first, parallel=1):
        for manifest, row in page:
            contents.add(manifest, row)
        if until_waiting and contents.waits_for is not None:
            break
    return contents
