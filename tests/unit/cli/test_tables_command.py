"""`hybrid-router tables`: what Iceberg tables show, and how a person repairs a stopped one."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.explain import explain_command
from cli.inspect.hours import hours_command
from cli.inspect.tables import tables_rebuild_command, tables_restore_command, tables_status_command
from lake.errors import InvalidInputError, TableStoppedError, UnknownDatasetError
from lake.hours import HourContents
from lake.ledger import ArrivalRow, Published, State
from lake.manifest import ObjectVersion
from router.tables.handler import rebuild_table as rebuild
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FakeLambda, FakeServices, stack_of, stack_with, with_settings
from tests.unit.lake.world import DOCUMENT, PARTITION, TOTALS
from tests.unit.router.conftest import Deployment, measure_speed
from tests.unit.router.sweep.sweeping import listed
from tests.unit.router.tables.tabling import TABLES, commit, publish, swapped, table


@pytest.fixture
def deployment(deployment: Deployment) -> Deployment:
    deployment.configure(datasets=TABLES)
    for name in ("clicks", "orders"):
        deployment.ledger.datasets.admit({name: ""}, 0)
    return deployment


@pytest.fixture
def stack(deployment: Deployment) -> DeployedStack:
    """Its functions answer as after a restore and a rebuild."""
    stack = replace(stack_with(FakeLambda({"batch": 2, "hours": 1})), ledger=deployment.ledger)
    return with_settings(stack, deployment.services)


Tables = Callable[..., list[Any]]


@pytest.fixture
def tables(answered: Answered) -> Tables:
    """The tables that ``status`` shows, with this exit code."""
    command = partial(answered, tables_status_command, schema="tables")
    return lambda stack, code, *dataset: command(stack, *dataset, code=code)["tables"]


def test_settings_of_another_version_are_not_called_wrong(deployment: Deployment, stack: DeployedStack) -> None:
    body = {"stage": "test", "stream": {"of_another_version": 1}}
    deployment.raw_s3.put_object(Bucket="control", Key="settings.json", Body=json.dumps(body).encode())
    with pytest.raises(InvalidInputError, match=r"deployed from another version .*of_another_version.*: deploy this"):
        tables_status_command(stack, None)


def test_a_table_is_current_or_behind(
    deployment: Deployment, stack: DeployedStack, printed: Printed, tables: Tables
) -> None:
    assert "no dataset that was converted has a rule" in printed(tables_status_command, stack)
    # Given files that have arrived in a new stage: nothing is published, so no table is behind
    manifest = listed(deployment, "a")
    assert tables(stack, ExitCode.OK) == []
    # Given a dataset that was converted, was moved to Iceberg, and has published nothing since
    measure_speed(deployment, 10)
    (orders,) = tables(stack, ExitCode.NEGATIVE)
    assert orders["state"] == "behind"
    assert "or run 'hybrid-router tables rebuild orders --stage" in orders["stopped"]
    # Given a publish, for which the next batch creates the table
    publish(deployment, manifest)
    (orders,) = tables(stack, ExitCode.NEGATIVE)
    assert (orders["state"], orders["waiting"], orders["stopped"]) == ("behind", 1, None)
    # Given a batch, and a publish days later that no batch has added
    commit(deployment)
    (orders,) = tables(stack, ExitCode.OK)
    assert (orders["state"], orders["batch"], orders["waiting"]) == ("current", 1, 0)
    publish(deployment, listed(deployment, "b"))
    # Then
    (orders,) = tables(stack, ExitCode.NEGATIVE, "orders")
    assert (orders["state"], orders["batch"], orders["waiting"]) == ("behind", 1, 1)
    assert orders["behindMinutes"] > 15
    with pytest.raises(UnknownDatasetError):
        tables_status_command(stack, "nowhere")
    # And a new table is behind until it has every hour, however young its entries are
    deployment.wait(datetime.now(UTC) - deployment.now)
    commit(deployment)
    rebuild(deployment.services, "orders")
    tables(stack, ExitCode.NEGATIVE)
    commit(deployment)
    tables(stack, ExitCode.OK)
    row = deployment.ledger.tables.get("orders")
    assert row is not None
    assert deployment.ledger.tables.replace(row, "uuid")
    tables(stack, ExitCode.NEGATIVE)


@pytest.mark.parametrize(("seconds", "code"), [(60, ExitCode.NEGATIVE), (3600, ExitCode.OK)])
def test_what_waits_for_the_next_batch_is_not_late(
    deployment: Deployment, stack: DeployedStack, tables: Tables, seconds: int, code: ExitCode
) -> None:
    deployment.configure(datasets=TABLES, tables={"commit_seconds": seconds})
    commit(deployment)
    # Given a publish of half an hour ago
    deployment.wait(datetime.now(UTC) - timedelta(minutes=30) - deployment.now)
    publish(deployment, listed(deployment, "a"))
    # Then
    tables(with_settings(stack, deployment.services), code)


def test_a_snapshot_shows_all_that_is_published_of_an_hour_that_waits_for_other_files(
    deployment: Deployment, stack: DeployedStack, answered: Answered
) -> None:
    # Given an hour with a current table, and a failed manifest of that hour
    row = publish(deployment, listed(deployment, "a"))
    commit(deployment)
    deployment.ledger.manifests.fail(listed(deployment, "b"), "it is broken", deployment.now)
    (hour,) = answered(hours_command, stack, "orders", PARTITION.stamp, PARTITION.stamp)["hours"]
    assert (hour["state"], hour["snapshot"]) == ("open", str(table(deployment)["current-snapshot-id"]))
    # And a reprocessed manifest counts as published, whether its generation is in the table or not
    shown = deployment.row(row.id)
    for published, expected in ((shown.published, 0), (Published(2, DOCUMENT, TOTALS), 1)):
        contents = HourContents(has_table=True)
        contents.add(row.id, replace(shown, state=State.QUEUED, published=published))
        assert (contents.not_in_table, contents.last_batch[0]) == (expected, 1)


def test_a_table_that_another_program_has_rolled_back_is_stopped(
    deployment: Deployment, stack: DeployedStack, answered: Answered, printed: Printed
) -> None:
    # Given
    for name in "ab":
        publish(deployment, listed(deployment, name))
        commit(deployment)
    metadata = table(deployment)
    first = metadata["snapshots"][0]["snapshot-id"]
    main = {"snapshot-id": first, "type": "branch"}
    swapped(deployment, {**metadata, "current-snapshot-id": first, "refs": {**metadata["refs"], "main": main}})
    late = publish(deployment, listed(deployment, "c"))
    with pytest.raises(TableStoppedError):
        commit(deployment)
    # Then
    text = printed(tables_status_command, stack, "orders", code=ExitCode.NEGATIVE)
    assert "orders\tstopped\t" in text
    assert "it was rolled back or replaced: run 'hybrid-router tables restore orders --stage" in text
    # And the commands for the hour and for the file report that the table does not show it yet
    command = "'hybrid-router tables status orders{}' shows whether it is behind or stopped\n"
    text = printed(hours_command, stack, "orders", PARTITION.stamp, PARTITION.stamp, code=ExitCode.NEGATIVE)
    waits = f"{PARTITION.stamp} waits for the Iceberg table, which does not show 1 published manifest yet: "
    assert waits + command.format(stack.options) in text
    (hour,) = answered(hours_command, stack, "orders", PARTITION.stamp, PARTITION.stamp)["hours"]
    assert (hour["manifests"]["done"], hour["manifests"]["notInTable"], hour["snapshot"]) == (3, 1, None)
    file = ObjectVersion("input", "orders/c", "e", 3, late.created_at, None)
    arrival = ArrivalRow(file, late.id, PARTITION, late.lane, "by default", late.created_at)
    deployment.ledger.arrivals.put(arrival)
    with_table = with_settings(stack_of(deployment, FakeServices()), deployment.services)
    text = printed(explain_command, with_table, file.uri)
    assert f"  table      not generation 1 yet: {command.format(with_table.options)}" in text
    # And control characters in a reason cannot affect the terminal
    row = deployment.ledger.tables.get("orders")
    assert row is not None
    deployment.ledger.tables.stop(row, "changed by \x1b[2J")
    assert "orders: changed by \\x1b[2J\n" in printed(tables_status_command, stack, "orders")


@pytest.mark.parametrize("others", [[{"name": "clicks", "prefix": "clicks/", "table": "iceberg"}], []])
def test_a_dataset_that_was_moved_back_has_no_table(
    deployment: Deployment, stack: DeployedStack, tables: Tables, others: list[dict[str, str]]
) -> None:
    # Given a dataset without a table in the new settings, whose old table has a pending entry
    publish(deployment, listed(deployment, "a"))
    commit(deployment)
    publish(deployment, listed(deployment, "b"))
    deployment.configure(datasets=[*others, {"name": "{folder}"}])
    stack = with_settings(stack, deployment.services)
    # Then
    assert tables(stack, ExitCode.OK) == []
    # And the command for its table does not report it as current
    with pytest.raises(InvalidInputError, match='gives orders table = "iceberg": deploy one that does'):
        tables_status_command(stack, "orders")
    assert hours_command(stack, "orders", PARTITION.stamp, PARTITION.stamp).code == ExitCode.OK


def test_restore_and_rebuild_ask_the_function(stack: DeployedStack, printed: Printed) -> None:
    assert "orders: it shows the rows of batch 2 again;" in printed(tables_restore_command, stack, "orders")
    rebuilt = printed(tables_rebuild_command, stack, "orders")
    assert "orders: 1 hour to be brought into the table; follow it with" in rebuilt
    assert stack.functions.requests == [("tables", {"restore": "orders"}), ("tables", {"rebuild": "orders"})]
    for change in (tables_restore_command, tables_rebuild_command):
        with pytest.raises(UnknownDatasetError):
            change(stack, "nowhere")
    without = replace(stack, outputs=replace(stack.outputs, tables=""))
    with pytest.raises(InvalidInputError, match="no dataset of the stage has an Iceberg table"):
        tables_restore_command(without, "orders")
