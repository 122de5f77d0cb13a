"""`hybrid-router catalog drop-columns`: only columns that no published file has are dropped."""

import json
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from cli.catalog import drop_columns
from cli.catalog.drop_columns import print_dropped_columns
from cli.deployed_stack import DeployedStack
from lake.errors import InvalidInputError, TerminalError
from lake.ledger.datasets import Datasets
from lake.ledger.transitions import Manifests
from tests.unit.cli.catalog.test_suggest import put
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import World


@pytest.fixture
def world(world: World) -> World:
    world.ledger.datasets.register("orders")
    world.ledger.datasets.reserve_columns("orders", ["amount", "id", "hostile_1", "hostile_2"], 4)
    put(world, 8, [{"id": "1"}])
    put(world, 9, [{"amount": "1", "hostile_1": "x"}])
    return world


@pytest.fixture
def stack(world: World, monkeypatch: pytest.MonkeyPatch) -> DeployedStack:
    monkeypatch.setattr("time.sleep", lambda _: None)
    return stack_of(world, FakeServices())


def columns(world: World) -> tuple[str, ...]:
    row = world.ledger.datasets.get("orders")
    assert row is not None
    return row.columns


def test_what_no_file_has_is_dropped_and_can_come_again(
    world: World, stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    for dry_run, left in ((True, 4), (False, 3)):
        print_dropped_columns(stack, "orders", dry_run=dry_run, as_json=True)
        answer = json.loads(capsys.readouterr().out)
        assert answer == {"dataset": "orders", "dryRun": dry_run, "files": 2, "dropped": ["hostile_2"]}
        assert len(columns(world)) == left
    assert columns(world) == ("amount", "hostile_1", "id")
    assert world.ledger.datasets.reserve_columns("orders", ["new"], 4) == ()
    # When it has no file at all
    for key in world.keys("lake"):
        world.raw_s3.delete_object(Bucket="lake", Key=key)
    print_dropped_columns(stack, "orders", dry_run=False, as_json=False)
    assert "4 columns dropped of 4, by 0 files" in capsys.readouterr().out
    assert columns(world) == ()
    assert world.ledger.datasets.reserve_columns("orders", ["id"], 4) == ()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_conversion_that_begins_and_ends_meanwhile_keeps_its_columns(
    world: World,
    stack: DeployedStack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_damaged: bool,
) -> None:
    drop = Datasets.drop_columns

    def publish_meanwhile(datasets: Datasets, *given: Any) -> bool:
        key = put(world, 10, [{"hostile_2": "x"}])
        if is_damaged:
            world.raw_s3.put_object(Bucket="lake", Key=key, Body=b"damaged")
        return drop(datasets, *given)

    world.ledger.datasets.reserve_columns("orders", ["hostile_3"], 5)
    monkeypatch.setattr(Datasets, "drop_columns", publish_meanwhile)
    if is_damaged:
        # Nothing is dropped where it cannot be read which columns were published.
        with pytest.raises(TerminalError, match="is not a Parquet file"):
            print_dropped_columns(stack, "orders", dry_run=False, as_json=True)
        assert columns(world) == ("amount", "hostile_1", "hostile_2", "hostile_3", "id")
    else:
        print_dropped_columns(stack, "orders", dry_run=False, as_json=True)
        assert json.loads(capsys.readouterr().out)["dropped"] == ["hostile_3"]
        assert columns(world) == ("amount", "hostile_1", "hostile_2", "id")


def test_a_conversion_that_begins_meanwhile_keeps_its_columns(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a run that claims a manifest while the footers are read
    row = world.queued("a.json")
    read = drop_columns._columns_of_files

    def claim_meanwhile(*arguments: Any) -> Iterator[set[str]]:
        yield from read(*arguments)
        world.wait(timedelta(seconds=1))
        world.claimed(row)

    monkeypatch.setattr(drop_columns, "_columns_of_files", claim_meanwhile)
    # When, Then: the second time before anything is read
    for dry_run in (False, True):
        with pytest.raises(InvalidInputError, match="is RUNNING"):
            print_dropped_columns(stack, "orders", dry_run=dry_run, as_json=False)
    assert len(columns(world)) == 4


def test_a_conversion_that_the_index_does_not_show_yet_keeps_its_columns(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a run that has claimed a manifest, and an index that catches up while the command waits
    world.claimed(world.queued("a.json"))
    behind = monkeypatch.context()
    behind.__enter__().setattr(Manifests, "open", lambda *_: iter(()))
    monkeypatch.setattr("time.sleep", lambda _: behind.__exit__(None, None, None))
    # When, Then
    with pytest.raises(InvalidInputError, match="is RUNNING"):
        print_dropped_columns(stack, "orders", dry_run=False, as_json=False)
    assert len(columns(world)) == 4


def test_a_signal_after_the_drop_takes_it_back(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: whether files have the columns by now cannot be read
    read = drop_columns._columns_of_files

    def fail_after_the_drop(*arguments: Any) -> Iterator[set[str]]:
        if "hostile_2" not in columns(world):
            signal.raise_signal(signal.SIGTERM)
        yield from read(*arguments)

    monkeypatch.setattr(drop_columns, "_columns_of_files", fail_after_the_drop)
    # When, Then
    with pytest.raises(KeyboardInterrupt):
        print_dropped_columns(stack, "orders", dry_run=False, as_json=False)
    assert len(columns(world)) == 4
