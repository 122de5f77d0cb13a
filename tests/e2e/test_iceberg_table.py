"""An Iceberg table of the deployed stack: its readers see one generation of each file, through the catalog alone."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.table import Table
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from lake.ledger import ManifestRow, State
from lake.manifest import ObjectVersion
from local.isolation import REGION
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import WITH_TABLE
from tests.e2e.waiting import wait_for


def table_of(scenario: Scenario) -> Table:
    """The table as a reader finds it in the catalog."""
    key, endpoint = scenario.cloud.access_key, scenario.cloud.endpoint
    names = {"access-key-id": key.id, "secret-access-key": key.secret, "region": REGION, "endpoint": endpoint}
    options: dict[str, Any] = {
        f"{service}.{name}": value for service in ("glue", "s3") for name, value in names.items()
    }
    catalog = GlueCatalog("local", **options)
    return catalog.load_table(f"{scenario.deployment.resources.tables_database}.{WITH_TABLE}")


def rows_of(scenario: Scenario, table: Table, snapshot: int) -> Counter[str]:
    """The rows that DuckDB and pyiceberg find in a snapshot, which must be equal."""
    found = scenario.table_rows(WITH_TABLE, snapshot)
    assert normal_rows(table.scan(snapshot_id=snapshot).to_arrow().to_pylist()) == found
    return found


def normal_rows(rows: list[dict[str, Any]]) -> Counter[str]:
    present = ({name: value for name, value in row.items() if value is not None} for row in rows)
    return Counter(
        json.dumps({name: row[name] for name in row if name not in ("date", "hour")}, sort_keys=True) for row in present
    )


def tabled(scenario: Scenario, file: ObjectVersion, generation: int) -> ManifestRow:
    """Wait until the table shows this generation."""

    def shown() -> ManifestRow | None:
        row = scenario.manifest_of(file)
        return row if row is not None and row.tabled is not None and row.tabled.generation == generation else None

    return wait_for(f"generation {generation} of {file.key} in the table", shown)


def new_snapshots(before: Table, after: Table) -> list[int]:
    known = {item.snapshot_id for item in before.snapshots()}
    return [item.snapshot_id for item in after.snapshots() if item.snapshot_id not in known]


def test_files_of_both_lanes_are_in_the_table_and_a_reprocess_is_one_snapshot(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an urgent file and one of the batch lane, each with keys that the other one lacks
    stack = scenario.deployment
    urgent = scenario.put(f"{WITH_TABLE}/urgent/a.ndjson", ['{"id": "1", "_pos": "x"}', '{"id": 2, "price": 1.10}'])
    other = scenario.put(f"{WITH_TABLE}/b.ndjson", ['{"id": "3", "late": null}', '{"late": [1, 2]}'])
    rows = Counter(['{"_pos__": "x", "id": "1"}', '{"id": "2", "price": "1.10"}', '{"id": "3"}', '{"late": "[1, 2]"}'])
    scenario.wait_state(other, State.QUEUED)
    tabled(scenario, urgent, 1)
    now = datetime.now(UTC)
    hours = {"from": f"{now - timedelta(hours=1):%Y-%m-%dT%H}", "to": f"{now + timedelta(hours=1):%Y-%m-%dT%H}"}
    night = {"dataset": WITH_TABLE, **hours}
    scenario.execute(stack.outputs.overnight, night)
    row = tabled(scenario, other, 1)
    # Then readers of the catalog see the rows of both
    first = table_of(scenario)
    shown = first.current_snapshot()
    assert shown is not None
    assert rows_of(scenario, first, shown.snapshot_id) == rows
    # When one of the files is converted again
    queued = stack.invoke("reprocess", {"manifests": [row.id], "all": True, "request": "again"})
    assert queued["queued"] == 1, queued
    scenario.execute(stack.outputs.overnight, night)
    again = tabled(scenario, other, 2)
    # Then one snapshot has its new rows instead of the old ones, and the old snapshot can still be read
    second = table_of(scenario)
    (reprocessed,) = new_snapshots(first, second)
    assert again.tabled is not None
    assert again.tabled.snapshot == reprocessed
    for snapshot in (shown.snapshot_id, reprocessed):
        assert rows_of(scenario, second, snapshot) == rows
    # When a late file arrives with a new column
    late = scenario.put(f"{WITH_TABLE}/urgent/late.ndjson", ['{"id": "4", "_file": "y", "new": true}'])
    tabled(scenario, late, 1)
    # Then
    third = table_of(scenario)
    (added,) = new_snapshots(second, third)
    rows['{"_file__": "y", "id": "4", "new": "true"}'] += 1
    assert rows_of(scenario, third, added) == rows
    # And the commands know the table
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    scenario.leave_local_state("e2e")
    place = ("--local", "--stage", "e2e")
    status = CliRunner().invoke(app, ["tables", "status", WITH_TABLE, "--json", *place])
    assert status.exit_code == ExitCode.OK, status.output
    (state,) = json.loads(status.stdout)["tables"]
    assert (state["state"], state["waiting"]) == ("current", 0)
    explained = CliRunner().invoke(app, ["explain", late.uri, *place])
    assert f"snapshot {added}\n" in explained.stdout
    # And the sweep finds no metadata that is old enough to be deleted
    stack.invoke("sweep", {"dryRun": False})
    swept = stack.ledger.tables.get(WITH_TABLE)
    assert swept is not None
    assert swept.cleaned_at
    assert rows_of(scenario, third, added) == rows
    # When a person rebuilds it, Then it has the same rows
    assert CliRunner().invoke(app, ["tables", "rebuild", WITH_TABLE, *place]).exit_code == ExitCode.OK
    wait_for("the table to be rebuilt", lambda: not list(stack.ledger.tables.outbox(WITH_TABLE)))
    rebuilt = table_of(scenario)
    last = rebuilt.current_snapshot()
    assert last is not None
    assert rebuilt.metadata.table_uuid != third.metadata.table_uuid
    assert rows_of(scenario, rebuilt, last.snapshot_id) == rows
    # And verify proves table and files
    proven = CliRunner().invoke(
        app, ["verify", "--dataset", WITH_TABLE, "--from", hours["from"], "--to", hours["to"], *place]
    )
    assert proven.exit_code == ExitCode.OK, proven.output
