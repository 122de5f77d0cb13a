"""A dry run of overnight ends with its forecast: it starts no job, judges nothing and sends no notification."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.e2e.machines.conftest import verdict

if TYPE_CHECKING:
    from tests.e2e.machines.conftest import StubbedMachines


def test_a_dry_run_ends_with_the_forecast(stubbed: StubbedMachines) -> None:
    # Given: two runs would be planned, and nothing was written
    index = {"bucket": "control", "key": "none"}
    forecast = {"runs": 2, "maxConcurrency": 2, "index": index, "forecast": {"minutes": 7}}
    stubbed.set_answers("stub-plan", forecast)
    stubbed.set_answers("stub-settle", verdict("EMPTY", "it must not be asked"))
    # When
    end = stubbed.run("overnight", {"dryRun": True})
    # Then
    assert (end["status"], json.loads(end["output"])) == ("SUCCEEDED", forecast)
    assert (stubbed.calls("job"), stubbed.calls("stub-settle"), stubbed.take_notifications()) == ([], [], [])
