"""Whether a refused force was the request's own write, which the client has repeated."""

from dataclasses import replace

import pytest

from lake.ledger import ManifestRow, State
from lake.ledger.transitions import is_forced_by
from lake.manifest import Lane
from tests.unit.lake.world import PARTITION

ROW = ManifestRow("m", State.FAILED, Lane.BATCH, PARTITION, "", 1, 1, generation=1)


@pytest.mark.parametrize(
    ("request_id", "generation", "recorded", "own"),
    [
        ("request-1", 2, "request-1", True),
        ("request-1", 2, "request-2", False),
        # Of a later generation: what was read of this one is outdated.
        ("request-1", 3, "request-1", False),
        ("request-1", 1, "request-1", False),
        (None, 2, None, False),
    ],
)
def test_only_the_next_generation_with_its_id_is_the_requests_own(
    request_id: str | None, generation: int, recorded: str | None, own: bool
) -> None:
    current = replace(ROW, state=State.QUEUED, generation=generation, request=recorded)
    assert is_forced_by(current, ROW, request_id) == own
