"""A backfill with force on the deployed stack: what is DONE is converted again, once, by the same execution."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import lake_prefix
from lake.ledger import State

if TYPE_CHECKING:
    from tests.e2e.scenario import Scenario

DATASET = "forced"


def test_a_forced_backfill_converts_again_what_is_done(scenario: Scenario) -> None:
    # Given a file that an overnight execution has converted.
    file = scenario.put(f"{DATASET}/a.ndjson", ['{"a":1}', '{"a":2}'])
    scenario.wait_state(file, State.QUEUED)
    now = datetime.now(UTC)
    hours = {"from": f"{now - timedelta(hours=1):%Y-%m-%dT%H}", "to": f"{now + timedelta(hours=1):%Y-%m-%dT%H}"}
    request = {"dataset": DATASET, **hours}
    scenario.execute(scenario.deployment.outputs.overnight, request)
    first = scenario.wait_state(file, State.DONE)
    assert first.generation == 1
    # When its hour is backfilled, then it is known and stays; with force it is converted again.
    known = scenario.execute(scenario.deployment.outputs.backfill, request)
    assert json.loads(known["output"])["search"]["known"] == 1
    assert scenario.wait_state(file, State.DONE).generation == 1
    forced = scenario.execute(scenario.deployment.outputs.backfill, {**request, "force": True})
    assert forced["status"] == "SUCCEEDED", forced.get("cause")
    assert json.loads(forced["output"])["search"]["reprocessed"] == 1
    row = scenario.wait_state(file, State.DONE)
    assert (row.id, row.generation) == (first.id, 2)
    assert row.published is not None
    assert row.published.generation == 2
    # And both generations are there until the sweep removes the first, after the grace period.
    for generation in (1, 2):
        prefix = lake_prefix(row.partition, row.id, generation)
        bucket = scenario.deployment.resources.lake_bucket
        assert scenario.deployment.s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["KeyCount"] == 1
