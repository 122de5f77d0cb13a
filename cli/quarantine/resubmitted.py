"""Lines of the quarantine that were given back already."""

from __future__ import annotations

from cli.deployed_stack import DeployedStack
from cli.quarantine.records import ONE_LINE, QuarantineRecord
from lake.ledger import ResubmissionRow
from lake.partition import Partition
from lake.resubmission import read_resubmission


class ResubmittedLines:
    """Says whether a line was given back, and by which resubmission; memory holds the lines of one hour."""

    def __init__(self, stack: DeployedStack) -> None:
        self._stack = stack
        self._partition: Partition | None = None
        self._lines: dict[tuple[str, str, int], ResubmissionRow] = {}

    def include(self, record: QuarantineRecord) -> bool:
        """Whether the record is of a line that was given back."""
        return record.kind == ONE_LINE and record.identity in self.of(record.partition)

    def of(self, partition: Partition) -> dict[tuple[str, str, int], ResubmissionRow]:
        """The lines of an hour that were given back, each by its identity."""
        if partition != self._partition:
            self._lines = {
                identity: row
                for row in self._stack.ledger.resubmissions.of(partition)
                for identity in read_resubmission(
                    self._stack.s3, self._stack.resources.control_bucket, row
                ).identities()
            }
            self._partition = partition
        return self._lines
