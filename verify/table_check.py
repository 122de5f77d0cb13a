"""Checks one hour of an Iceberg table: it must show exactly the files that the hour's manifests have published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lake.commit import read_commit
from lake.errors import InvalidDocumentError, UnusableDocumentError
from lake.layout import partition_prefix
from lake.ledger import ManifestRow, Published, Tabled
from lake.manifest import Partition
from lake.successors import follow
from lake.texts import format_count
from verify.report import Difference, HourReport

if TYPE_CHECKING:
    from verify.stack import Stack

STATUS = "hybrid-router tables status"


Column = tuple[str, int | None]
"""Name of a column of a file, and its field id if it has one."""


class ShownFile(NamedTuple):
    size: int
    rows: int


class ShownTable(Protocol):
    def files(self, partition: Partition) -> Mapping[str, ShownFile]:
        """The files of an hour, by URI."""

    def has_foreign_rows(self) -> bool:
        """Whether another writer has changed rows of any hour since the last batch."""

    def hidden(self, columns: Iterable[Column]) -> list[Column]:
        """The columns of files that the table lacks; none if it cannot be read."""


def check_table(stack: Stack, partition: Partition, rows: Iterable[ManifestRow], report: HourReport) -> None:
    """Compare an hour of the table with the commit documents of the generations that it must show.

    If another writer has compacted files, only the numbers of rows are compared.
    """
    if stack.table is None:
        return
    published = [row for row in rows if row.published is not None]
    if waiting := [row.id for row in published if not row.is_tabled]:
        report.cannot_be_proven(f"the Iceberg table does not show manifest {waiting[0]} yet: see '{STATUS}'")
        return
    try:
        expected = _expected(stack, published)
    except UnusableDocumentError as error:
        report.cannot_be_proven(f"the files of the Iceberg table were not compared: {error}")
        return
    try:
        shown = stack.table.files(partition)
    except InvalidDocumentError as error:
        report.differs(Difference(f"the Iceberg table {partition.dataset}", str(error)))
        return
    if shown == expected:
        return
    if _states(_read_published(stack, partition, published)) != _states(published):
        report.cannot_be_proven("the Iceberg table has changed meanwhile: verify this hour again")
        return
    prefix = f"s3://{stack.resources.lake_bucket}/{partition_prefix(partition)}"
    rows_shown, rows_expected = (sum(file.rows for file in files.values()) for files in (shown, expected))
    if all(uri.startswith(prefix) for uri in shown):
        _compare_files(shown, expected, report)
    elif stack.table.has_foreign_rows():
        problem = f"shows rows of {partition.stamp} that another writer may have changed: see '{STATUS}'"
        report.differs(Difference(f"the Iceberg table {partition.dataset}", problem))
    elif rows_shown != rows_expected:
        count = format_count(rows_shown, "row")
        problem = f"shows {count} of {partition.stamp}, and {rows_expected:,} are published: see '{STATUS}'"
        report.differs(Difference(f"the Iceberg table {partition.dataset}", problem))


def _read_published(stack: Stack, partition: Partition, before: Iterable[ManifestRow]) -> list[ManifestRow]:
    """The manifests that have published something of an hour now, even if they had not ``before``."""
    names = [*(row.id for row in before), *stack.ledger.partitions.manifests(partition)]
    pages = follow(stack.ledger, names, parallel=1)
    rows = (row for page in pages for _, row in page if row is not None and row.published is not None)
    return stack.with_current_marks(list(rows))


def _states(rows: Iterable[ManifestRow]) -> dict[str, tuple[Published | None, Tabled | None]]:
    return {row.id: (row.published, row.tabled) for row in rows}


def _compare_files(shown: Mapping[str, ShownFile], expected: Mapping[str, ShownFile], report: HourReport) -> None:
    for uri in sorted(expected.keys() | shown.keys()):
        if uri not in shown:
            report.differs(Difference(uri, f"is published, and the Iceberg table does not show it: see '{STATUS}'"))
        elif uri not in expected:
            report.differs(Difference(uri, f"is shown by the Iceberg table, and is not published: see '{STATUS}'"))
        elif shown[uri] != expected[uri]:
            report.differs(Difference(uri, "has another size or number of rows in the Iceberg table than published"))


def _expected(stack: Stack, published: Iterable[ManifestRow]) -> Mapping[str, ShownFile]:
    files: dict[str, ShownFile] = {}
    for row in published:
        assert row.published is not None
        document = read_commit(stack.s3, stack.resources.control_bucket, row.published.document)
        files |= {f"s3://{item.bucket}/{item.key}": ShownFile(item.size, item.rows) for item in document.objects}
    return files
