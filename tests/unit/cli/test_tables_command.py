"""`hybrid-router tables`: what Iceberg tables show, and what a person does about one that is stopped."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cli.errors import ExitCode
from cli.inspect.tables import print_table_status, rebuild_table, restore_table
from lake.errors import REFUSED, InvalidInputError, TableStoppedError, UnknownDatasetError
from router.tables.handler import rebuild_table as rebuild
from router.tables.handler import restore_table as restore
from tests.unit.cli.schemas import valid_json
from tests.unit.cli.stack_world import FakeLambda, stack_with
from tests.unit.router.conftest import Deployment
from tests.unit.router.tables.tabling import TABLES, commit, forced, listed, name_of, publish, shown, swapped, table

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack


class Functions:
    """Lambda, with the function ``tables``."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def invoke(self, *, FunctionName: str, Payload: str) -> dict[str, Any]:  # noqa: N803
        assert FunctionName == "tables-function"
        ((name, dataset),) = json.loads(Payload).items()
        try:
            body = {"restore": restore, "rebuild": rebuild}[name](self._deployment.services, dataset)
        except InvalidInputError as error:
            return {"Payload": io.BytesIO(json.dumps({REFUSED: str(error)}).encode())}
        return {"Payload": io.BytesIO(json.dumps(body).encode())}


@pytest.fixture
def deployment(deployment: Deployment) -> Deployment:
    deployment.configure(datasets=TABLES)
    for name in ("clicks", "orders"):
        deployment.ledger.datasets.register(name)
    return deployment


@pytest.fixture
def stack(deployment: Deployment) -> DeployedStack:
    stack = stack_with(FakeLambda({}))
    functions: Any = Functions(deployment)
    outputs = replace(stack.outputs, tables="tables-function")
    return replace(stack, outputs=outputs, functions=functions, s3=deployment.raw_s3, ledger=deployment.ledger)


def status(stack: DeployedStack, capsys: pytest.CaptureFixture[str], dataset: str | None = None) -> tuple[int, Any]:
    code = print_table_status(stack, dataset, as_json=True)
    document = json.loads(capsys.readouterr().out)
    valid_json("tables", document)
    return code, document["tables"]


def test_a_table_is_current_or_behind(
    deployment: Deployment, stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_table_status(stack, None, as_json=False) == ExitCode.FINE
    assert "no dataset has an Iceberg table yet" in capsys.readouterr().out
    # Given a batch, and days later a publish that no batch has brought in
    publish(deployment, listed(deployment, "a"))
    commit(deployment)
    code, (orders,) = status(stack, capsys)
    assert (code, orders["state"], orders["batch"], orders["waiting"]) == (ExitCode.FINE, "current", 1, 0)
    publish(deployment, listed(deployment, "b"))
    # Then
    code, (orders,) = status(stack, capsys, "orders")
    assert (code, orders["state"], orders["batch"], orders["waiting"]) == (ExitCode.NOT_SO, "behind", 1, 1)
    assert orders["behindMinutes"] > 15
    assert print_table_status(stack, None, as_json=False) == ExitCode.NOT_SO
    assert "behind" in capsys.readouterr().out
    with pytest.raises(UnknownDatasetError):
        print_table_status(stack, "nowhere", as_json=False)


def test_restore_undoes_what_another_program_has_done(
    deployment: Deployment, stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a table that was rolled back
    rows = [publish(deployment, listed(deployment, "a"))]
    commit(deployment)
    rows.append(publish(deployment, listed(deployment, "b")))
    commit(deployment)
    metadata = table(deployment)
    first = metadata["snapshots"][0]["snapshot-id"]
    main = {"snapshot-id": first, "type": "branch"}
    swapped(deployment, {**metadata, "current-snapshot-id": first, "refs": {**metadata["refs"], "main": main}})
    publish(deployment, listed(deployment, "c"))
    with pytest.raises(TableStoppedError):
        commit(deployment)
    assert print_table_status(stack, "orders", as_json=False) == ExitCode.NOT_SO
    printed = capsys.readouterr().out
    assert "stopped" in printed
    assert "it was rolled back or replaced: run 'hybrid-router tables status --stage" in printed
    # When
    assert restore_table(stack, "orders") == ExitCode.FINE
    # Then the table goes on
    assert capsys.readouterr().out.startswith("orders: its rows are those of batch 2;")
    assert shown(deployment) == sorted(map(name_of, rows))
    assert commit(deployment) == 3
    assert len(shown(deployment)) == 3
    assert status(stack, capsys)[0] == ExitCode.FINE


def test_rebuild_makes_a_table_of_what_is_published(
    deployment: Deployment, stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given what was published while the dataset had no table, and something since then
    row = publish(deployment, listed(deployment, "a"))
    deployment.ledger.tables.forget("orders", f"{row.id}#g1")
    publish(deployment, forced(deployment, publish(deployment, listed(deployment, "b"))))
    # When
    assert rebuild_table(stack, "orders") == ExitCode.FINE
    # Then
    assert capsys.readouterr().out.startswith("orders: 1 hour to be brought into the table; follow it with")
    commit(deployment)
    before = shown(deployment)
    assert sorted(name.rsplit("-", 1)[-1] for name in before) == ["g1", "g2"]
    # And a second one makes another table with the same rows
    uuid = table(deployment)["table-uuid"]
    assert rebuild_table(stack, "orders") == ExitCode.FINE
    commit(deployment)
    assert shown(deployment) == before
    assert table(deployment)["table-uuid"] != uuid


def test_who_cannot_be_helped_is_told_what_to_run(deployment: Deployment, stack: DeployedStack) -> None:
    with pytest.raises(InvalidInputError, match="run 'hybrid-router tables status'"):
        restore_table(stack, "orders")
    deployment.configure(datasets=[{"name": "{folder}"}])
    with pytest.raises(InvalidInputError, match=r'no rule of .* gives orders table = "iceberg"'):
        rebuild_table(stack, "orders")
    without = replace(stack, outputs=replace(stack.outputs, tables=""))
    with pytest.raises(InvalidInputError, match="no dataset of the stage has an Iceberg table"):
        restore_table(without, "orders")
