"""Lines of the quarantine that a person has given back: files of the hour that no listing of the input has."""

from __future__ import annotations

from lake.partition import Partition
from verify.file_index import FileIndex
from verify.report import Difference, HourReport
from verify.stack import Stack


def find_resubmitted(stack: Stack, partition: Partition, index: FileIndex, report: HourReport) -> None:
    """Add the files of an hour's resubmissions to ``index``; those that no manifest has are reported."""
    for row in stack.ledger.resubmissions.of(partition):
        arrival = stack.ledger.arrivals.get(row.file)
        if arrival is None or arrival.manifest is None:
            problem = "was given back, and no manifest has it: run 'hybrid-router quarantine retry <file>' again"
            report.differs(Difference(row.file.uri, problem, row.file.version))
        else:
            index.add(report.hour, arrival.manifest, [row.file])
