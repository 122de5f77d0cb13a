"""Rows of the ledger as they are some time after a process has left them, and a stream that a person starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger.manifest_row import manifest_row_key
from lake.time import iso_utc
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from lake.ledger import ManifestRow, State
    from tests.e2e.scenario import Scenario


def in_index(scenario: Scenario, row: ManifestRow, state: State) -> None:
    """Wait until the index, which lags, has the manifest in this state."""
    manifests = scenario.deployment.ledger.manifests
    wait_for(f"{row.id} in the index", lambda: row.id in {item.id for item in manifests.open(row.lane, state)})


def make_older(scenario: Scenario, row: ManifestRow, age: timedelta) -> None:
    """The last transition of the manifest was so long ago."""
    key, then = manifest_row_key(row.id), iso_utc(datetime.now(UTC) - age)
    scenario.cloud.client("dynamodb").update_item(
        TableName=scenario.deployment.resources.ledger_table,
        Key={"pk": {"S": key.pk}, "sk": {"S": key.sk}},
        UpdateExpression="SET changed_at = :then",
        ExpressionAttributeValues={":then": {"S": then}},
    )


def start_stream(scenario: Scenario) -> None:
    """A person starts the stream, and its window is over, so that it ends when it has been idle."""
    scenario.deployment.control_stream("start")
    scenario.deployment.ledger.stream.open_window(iso_utc(datetime.now(UTC)))
