"""The ledger: one DynamoDB table with the state of every arrival and manifest. It is the only source of truth."""

from dataclasses import dataclass
from typing import get_type_hints

from lake.aws_types import DynamoDBClient
from lake.ledger.arrivals import ArrivalRow, Arrivals, IgnoredFiles, ResubmissionRow, Resubmissions
from lake.ledger.collections import CollectionId, CollectionRow, Collections, Part
from lake.ledger.costs import CostRow, Costs, CostShare, DatasetMeasurement, DatasetSpeed, Executions, SpeedSample
from lake.ledger.datasets import DatasetRow, Datasets
from lake.ledger.hours import Deletions, HourCounts, HourRow, HourState, Partitions
from lake.ledger.manifest_row import (
    CommitReference,
    ManifestCounts,
    ManifestRow,
    Published,
    PublishedObjects,
    PublishedTotals,
    State,
    Tabled,
)
from lake.ledger.stream import Canaries, Stream, StreamRow
from lake.ledger.table import LedgerTable
from lake.ledger.tables import OutboxEntry, TableRow, Tables
from lake.ledger.transitions import Failure, Manifests


@dataclass(frozen=True, slots=True)
class Ledger:
    arrivals: Arrivals
    manifests: Manifests
    datasets: Datasets
    partitions: Partitions
    stream: Stream
    executions: Executions
    costs: Costs
    resubmissions: Resubmissions
    deletions: Deletions
    canaries: Canaries
    ignored: IgnoredFiles
    tables: Tables
    collections: Collections

    @classmethod
    def over(cls, client: DynamoDBClient, table_name: str) -> "Ledger":
        """``client`` is the ``meta.client`` of a boto3 DynamoDB resource (plain Python values, thread-safe)."""
        table = LedgerTable(client, table_name)
        return cls(*(rows(table) for rows in get_type_hints(cls).values()))
