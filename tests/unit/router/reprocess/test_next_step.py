"""What a reprocess means for a manifest, by the state of its row."""

from dataclasses import replace

import pytest

from lake.ledger import ManifestRow, State
from router.requests.report import Only, Step, has_unreadable_files, next_reprocess_step
from tests.unit.lake.transitions import TOTALS, row_in_state
from tests.unit.router.conftest import Deployment

REQUEST = "r-2"


def without_unreadable_files(row: ManifestRow) -> ManifestRow:
    """The row, with totals that count no unreadable file."""
    if row.published is None:
        return row
    return replace(row, published=replace(row.published, totals=replace(TOTALS, failed_files=0)))


CASES = [
    ("FAILED", Only.FAILED, Step.ACT, ""),
    ("DONE", Only.FAILED, Step.LEAVE, "converted"),
    ("DONE", Only.ALL, Step.ACT, ""),
    ("QUEUED", Only.ALL, Step.LEAVE, "open"),
    ("RUNNING", Only.ALL, Step.LEAVE, "open"),
    ("PUBLISHING", Only.ALL, Step.LEAVE, "open"),
    ("SUPERSEDED", Only.ALL, Step.FOLLOW, ""),
    ("COLLECTED", Only.ALL, Step.FOLLOW, ""),
    # No manifest document was written for it: its files have another owner.
    ("ABANDONED", Only.ALL, Step.LEAVE, "unknown"),
]


@pytest.mark.parametrize(("state", "only", "step", "count"), CASES)
def test_only_a_manifest_that_has_ended_is_queued(
    deployment: Deployment, state: str, only: Only, step: Step, count: str
) -> None:
    found = next_reprocess_step(without_unreadable_files(row_in_state(deployment, state)), only, REQUEST)
    assert (found.step, found.count) == (step, count)


def test_a_manifest_without_a_row_is_unknown() -> None:
    assert next_reprocess_step(None, Only.ALL, REQUEST).count == "unknown"


def test_each_state_has_a_case() -> None:
    assert {state for state, *_ in CASES} == set(State)


def test_only_a_manifest_that_is_done_has_left_files_out(deployment: Deployment) -> None:
    done = row_in_state(deployment, "DONE")
    assert has_unreadable_files(done)
    assert not has_unreadable_files(without_unreadable_files(done))
    assert not has_unreadable_files(replace(done, state=State.FAILED))
