"""The commit point: what a run does when the ledger refuses its commit or does not answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.errors import LeaseLostError
from lake.ledger import Claim, CommitReference, ManifestRow, State
from lake.manifest import Lane, Partition
from transform import finalize
from transform.task_model import ConversionContext

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ROW = ManifestRow("m", State.RUNNING, Lane.BATCH, Partition("d", "2026-03-04", 12), "2026", 1, 1, attempt=1)
REFERENCE = CommitReference("commits/m.json", "0" * 64)
NO_ANSWER = ReadTimeoutError(endpoint_url="https://ledger")
DEFECT = ClientError({"Error": {"Code": "ValidationException", "Message": "no"}}, "UpdateItem")
"""Not a fault of the environment: a repetition would be refused as well."""


@dataclass
class FakeManifests:
    """A ledger with one row; ``errors`` are raised by its first commits."""

    errors: list[Exception]
    applied: bool = False
    """Whether a commit is applied although it has no answer."""
    row: ManifestRow = ROW
    released: list[tuple[str, bool]] = field(default_factory=list)

    def commit(self, claim: Claim, reference: CommitReference, now: datetime) -> None:
        if self.errors and not self.applied:
            raise self.errors.pop(0)
        self.row = replace(self.row, state=State.PUBLISHING, document=reference)
        if self.errors:
            raise self.errors.pop(0)

    def release(self, row: ManifestRow, reason: str, now: datetime, exclusions: str | None, *, counted: bool) -> bool:
        if self.row.state != State.RUNNING:
            return False
        self.row = replace(self.row, state=State.QUEUED)
        self.released.append((reason, counted))
        return True

    def get(self, manifest: str) -> ManifestRow:
        return self.row


def commit(manifests: FakeManifests) -> tuple[bool, list[str]]:
    """Whether the commit is in the ledger, and the log."""
    lines: list[str] = []
    services: Any = SimpleNamespace(ledger=SimpleNamespace(manifests=manifests))
    spark: Any = None
    context = ConversionContext(spark, services, "run-1", lambda: NOON, lambda _: False, lines.append)
    return finalize._commit(context, Claim(ROW, "run-1"), REFERENCE, ()), lines


def test_a_commit_without_an_answer_is_tried_again_and_logged() -> None:
    manifests = FakeManifests([NO_ANSWER, NO_ANSWER])
    committed, lines = commit(manifests)
    assert committed
    assert manifests.released == []
    assert lines == [
        f"the commit of manifest m got no answer in try {number} of 3: {NO_ANSWER}; "
        "after the last try the ledger row decides"
        for number in (1, 2)
    ]


def test_a_commit_that_the_ledger_refuses_is_given_up_and_uses_up_a_try() -> None:
    manifests = FakeManifests([LeaseLostError("run-2 has taken it over")])
    committed, _ = commit(manifests)
    assert not committed
    assert manifests.row.state == State.QUEUED
    assert manifests.released == [("its commit was refused or got no answer", True)]


def test_a_commit_whose_request_is_wrong_is_given_up_and_uses_up_a_try() -> None:
    manifests = FakeManifests([DEFECT] * 3)
    committed, _ = commit(manifests)
    assert not committed
    assert manifests.released == [("its commit was refused or got no answer", True)]


@pytest.mark.parametrize("last", [NO_ANSWER, LeaseLostError("the lease has ended meanwhile")])
def test_a_commit_without_any_answer_uses_up_no_try(last: Exception) -> None:
    manifests = FakeManifests([NO_ANSWER, NO_ANSWER, last])
    with pytest.raises(ReadTimeoutError):
        commit(manifests)
    assert manifests.row.state == State.QUEUED
    ((reason, counted),) = manifests.released
    assert reason.startswith("AWS could not be reached")
    assert not counted


def test_a_commit_that_was_applied_without_an_answer_is_published() -> None:
    manifests = FakeManifests([NO_ANSWER] * 3, applied=True)
    committed, _ = commit(manifests)
    assert committed
    assert manifests.released == []
