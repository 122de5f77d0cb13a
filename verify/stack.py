"""The parts of a deployment that a verification needs; it only reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lake.aws_types import S3Client
from lake.dataset_rules import dataset_prefixes, matching_rule, takes_no_folder
from lake.hours import stamps_between
from lake.ledger import Ledger, ManifestRow
from lake.ledger.tables import with_current_mark
from lake.manifest import Partition
from lake.resource_names import ResourceNames
from lake.settings import Settings
from verify.table_check import ShownTable

HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class Stack:
    s3: S3Client
    ledger: Ledger
    resources: ResourceNames
    prefixes: tuple[str, ...]
    """Prefixes in the input bucket that cover all keys of the dataset."""
    belongs: Callable[[str], bool]
    clock: Callable[[], datetime]
    """Returns the current time: aware, UTC."""
    has_table: bool = False
    """Whether the dataset has an Iceberg table, whose earlier snapshots need replaced objects."""
    table: ShownTable | None = None
    flat_prefixes: frozenset[str] = frozenset()
    """The ``prefixes`` after which no key of the dataset has a folder."""

    @classmethod
    def of(
        cls,
        s3: S3Client,
        ledger: Ledger,
        resources: ResourceNames,
        settings: Settings,
        dataset: str,
        clock: Callable[[], datetime],
    ) -> "Stack":
        """The values for a dataset by the settings, with these clients."""

        def belongs(key: str) -> bool:
            if settings.input.suffix_of(key) is None:
                return False
            rule, name = matching_rule(key, settings.datasets)
            return rule is not None and name == dataset and rule.folder_of(key) in (None, folder)

        folder = ledger.datasets.folder(dataset) or dataset
        prefixes = tuple(dataset_prefixes(dataset, settings.datasets, folder))
        has_table = settings.has_table(dataset)
        flat = frozenset(prefix for prefix in prefixes if takes_no_folder(prefix, settings.datasets))
        return cls(s3, ledger, resources, prefixes, belongs, clock, has_table, flat_prefixes=flat)

    def with_current_marks(self, rows: Sequence[ManifestRow]) -> list[ManifestRow]:
        """Manifests of a dataset, without marks of an Iceberg table that a rebuild has replaced."""
        table = self.ledger.tables.get(rows[0].partition.dataset) if rows and self.has_table else None
        return [with_current_mark(row, table) for row in rows]


@dataclass(frozen=True, slots=True)
class Hours:
    dataset: str
    first: str
    """``YYYY-MM-DDTHH``, UTC, inclusive."""
    last: str
    """``YYYY-MM-DDTHH``, UTC, inclusive."""

    def contain(self, partition: Partition) -> bool:
        return partition.dataset == self.dataset and self.first <= partition.stamp <= self.last

    def stamps(self) -> list[str]:
        return stamps_between(self.first, self.last)
