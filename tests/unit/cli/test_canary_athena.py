"""``doctor --canary --athena``: what Athena shows of the Iceberg tables. moto answers; no query is executed."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.athena.models import QueryResults, athena_backends
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_api import state_manager

from cli.deployed_stack import DeployedStack
from cli.doctor.canary import MAX_QUERY_SECONDS, ask_athena
from cli.doctor.checks import Readiness
from local.isolation import REGION
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import World

WORKGROUP = "analysts"


client = partial(boto3.client, region_name=REGION)


@pytest.fixture
def stack(world: World) -> Iterator[DeployedStack]:
    """A stage with one table of two columns, in an account with a workgroup."""
    with mock_aws():
        stack = replace(stack_of(world, FakeServices()), glue=client("glue"), open_client=client)
        database = stack.resources.tables_database
        stack.glue.create_database(DatabaseInput={"Name": database})
        columns = [{"Name": name, "Type": "string"} for name in ("date", "hour", "id", 'a "b"')]
        table: Any = {"Name": "orders", "StorageDescriptor": {"Columns": columns}}
        stack.glue.create_table(DatabaseName=database, TableInput=table)
        client("athena").create_work_group(Name=WORKGROUP)
        yield stack


def queue(*counts: int) -> None:
    row = {"Data": [{"VarCharValue": str(count)} for count in counts]}
    backend = athena_backends[DEFAULT_ACCOUNT_ID][REGION]
    backend.query_results_queue.append(QueryResults([{"Data": []}, row], []))


@pytest.mark.parametrize(
    ("counts", "state", "text"),
    [
        ((1000, 0, 7), Readiness.OK, "of 1,000 rows 1 of 2 columns have values"),
        ((1000, 0, 0), Readiness.TO_DO, "move no reader to it"),
        ((0, 0, 0), Readiness.SKIPPED, "no rows yet"),
    ],
)
def test_values_are_shown_or_nulls(stack: DeployedStack, counts: tuple[int, ...], state: Readiness, text: str) -> None:
    queue(*counts)
    (finding,) = ask_athena(stack, WORKGROUP)
    assert (finding.check, finding.state) == ("orders", state)
    assert text in finding.text
    # And the query was one that Athena can read
    athena = client("athena")
    (query,) = athena.list_query_executions()["QueryExecutionIds"]
    statement = athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Query"]
    assert statement.startswith('SELECT count(*), count("id"), count("a ""b""") FROM (SELECT * FROM "')


@pytest.mark.parametrize(("state", "waits"), [("FAILED", 1), ("CANCELLED", 1), ("RUNNING", MAX_QUERY_SECONDS)])
def test_a_query_that_does_not_succeed_is_something_to_do(stack: DeployedStack, state: str, waits: int) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        (execution,) = athena_backends[DEFAULT_ACCOUNT_ID][REGION].executions.values()
        execution.status = state

    state_manager.set_transition("athena::execution", {"progression": "manual", "times": 1000})
    (finding,) = ask_athena(stack, WORKGROUP, wait)
    state_manager.unset_transition("athena::execution")
    assert finding.state is Readiness.TO_DO
    assert state in finding.text
    assert len(waited) == waits


def test_an_unknown_workgroup_a_database_without_tables_and_none_at_all(stack: DeployedStack) -> None:
    (finding,) = ask_athena(stack, "other")
    assert finding.state is Readiness.TO_DO
    stack.glue.delete_table(DatabaseName=stack.resources.tables_database, Name="orders")
    (finding,) = ask_athena(stack, WORKGROUP)
    assert finding.state is Readiness.SKIPPED
    stack.glue.delete_database(Name=stack.resources.tables_database)
    (finding,) = ask_athena(stack, WORKGROUP)
    assert finding.state is Readiness.TO_DO
