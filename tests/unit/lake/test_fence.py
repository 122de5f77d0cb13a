"""The conditions of a write: which change of another process refuses it."""

from dataclasses import replace

import pytest

from lake.ledger import Claim, CommitReference, ManifestRow, State
from lake.ledger.table import Condition
from lake.ledger.transitions import row_unchanged
from lake.manifest import Lane
from tests.unit.lake.world import PARTITION

DOCUMENT = CommitReference("commits/c.json", "0" * 64)
ROW = ManifestRow("m", State.QUEUED, Lane.BATCH, PARTITION, "", 1, 1, generation=2, attempt=3, owner="jr_1")
COMMITTED = replace(ROW, document=DOCUMENT)
ATTEMPT = [Condition("generation", "=", 2), Condition("attempt", "=", 3)]


@pytest.mark.parametrize(
    ("row", "further"),
    [
        (ROW, []),
        (replace(ROW, state=State.RUNNING), [Condition("owner", "=", "jr_1")]),
        (
            replace(COMMITTED, state=State.PUBLISHING),
            [Condition("document", "=", {"key": DOCUMENT.key, "sha256": DOCUMENT.sha256})],
        ),
        # Of a generation that has ended: its document decides nothing any more.
        (replace(COMMITTED, state=State.DONE), []),
        (replace(COMMITTED, state=State.FAILED), []),
    ],
)
def test_a_row_is_unchanged_while_its_attempt_and_what_the_state_adds_are_the_same(
    row: ManifestRow, further: list[Condition]
) -> None:
    assert row_unchanged(row) == [Condition("state", "=", row.state), *ATTEMPT, *further]


def test_a_claim_holds_while_its_attempt_is_running() -> None:
    claim = Claim(replace(ROW, state=State.RUNNING), "jr_1")
    assert claim.fence == [Condition("state", "=", State.RUNNING), *ATTEMPT]
