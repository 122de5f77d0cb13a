"""How often a manifest is tried before it is superseded or FAILED."""

from dataclasses import replace

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.partition import Partition
from lake.settings import BatchSettings, Settings, StreamSettings
from transform.poison_manifest import attempts_allowed

SETTINGS = Settings("test", stream=StreamSettings(max_attempts=3), batch=BatchSettings(max_attempts=5))
ROW = ManifestRow("m", State.QUEUED, Lane.BATCH, Partition("orders", "2026-11-20", 9), "", 100, 1)


@pytest.mark.parametrize(
    ("lane", "exclusions", "allowed"),
    [
        (Lane.STREAM, None, 3),
        (Lane.BATCH, None, 5),
        (Lane.STREAM, "exclusions/m.json", 4),
        (Lane.BATCH, "exclusions/m.json", 6),
    ],
)
def test_the_attempt_that_found_unreadable_files_does_not_count(
    lane: Lane, exclusions: str | None, allowed: int
) -> None:
    assert attempts_allowed(SETTINGS, replace(ROW, lane=lane, exclusions=exclusions)) == allowed
