"""`hybrid-router catalog`: suggested types, the objects that they come from, and their views; dropped columns."""

import errno
import io
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ReadTimeoutError

from cli.catalog import drop_columns
from cli.catalog.column_types import ColumnType, Dialect, TypeKind, athena_view, quoted, text_names
from cli.catalog.drop_columns import catalog_drop_columns_command
from cli.catalog.suggest import (
    _newest_objects,
    catalog_suggest_command,
    read_sample,
    suggest_for_dataset,
    suggest_for_folder,
)
from cli.commands import Answer
from cli.deployed_stack import DeployedStack
from cli.errors import NotFoundError
from lake.errors import InvalidInputError, TerminalError, UnknownDatasetError
from lake.layout import lake_key
from lake.ledger.datasets import Datasets
from lake.ledger.transitions import Manifests
from lake.manifest import Partition
from router.iceberg.metadata import new_metadata, with_columns
from router.tables.batch import TableCatalog
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FakeServices, stack_of, with_settings
from tests.unit.lake.test_dataset_and_arrival_rows import WITH_ONE_FIELD_ID
from tests.unit.lake.world import World
from tests.unit.router.conftest import Deployment
from tests.unit.router.tables.tabling import TABLES, swapped, table

ROWS = [{"amount": "12.50", "id": "1"}, {"amount": "n/a", "id": "2"}, *[{"amount": "3.99", "id": "3"}] * 18]


@pytest.fixture
def world(world: World) -> World:
    world.ledger.datasets.admit({"orders": ""}, 0)
    world.ledger.datasets.reserve_columns("orders", ["amount", "id", "later"], 100)
    return world


@pytest.fixture
def stack(world: World) -> DeployedStack:
    return stack_of(world, FakeServices())


def put(world: World, hour: int, rows: list[dict[str, str]], number: int = 0, **options: Any) -> str:
    """An object of the lake, as a conversion publishes it."""
    body = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), body, **options)
    key = lake_key(Partition("orders", "2026-11-20", hour), "20261120093000-000000000000", 1, number)
    world.raw_s3.put_object(Bucket="lake", Key=key, Body=body.getvalue())
    return key


def test_types_are_proposed_with_what_they_refuse(world: World, stack: DeployedStack, answered: Answered) -> None:
    put(world, 9, ROWS)
    document = answered(suggest_for_dataset, stack, "orders", 5, None, schema="catalog-suggest")
    assert (document["files"], document["rows"]) == (1, 20)
    names = ("name", "type", "values", "nulls", "refused", "examples")
    assert [tuple(column[name] for name in names) for column in document["columns"]] == [
        ("amount", "DECIMAL(38, 2)", 20, 0, 1, ["n/a"]),
        ("id", "BIGINT", 20, 0, 0, []),
        ("later", "VARCHAR", 0, 20, 0, []),
    ]
    assert "FROM read_parquet('s3://lake/orders/*/*/*.parquet', union_by_name = true" in document["sql"]["duckdb"]


def test_the_views_of_an_iceberg_table_are_over_that_table(deployment: Deployment, printed: Printed) -> None:
    # Given a table with a column that another engine has renamed, and a column that no batch has added yet
    deployment.configure(datasets=TABLES)
    stack = with_settings(stack_of(deployment, FakeServices()), deployment.services)
    tables = TableCatalog(deployment.services, "orders")
    first, second = WITH_ONE_FIELD_ID
    columns = ["_pos", first, second]
    tables.create(with_columns(new_metadata(tables.location, "uuid", 0, 0), columns, [second]))
    renamed = json.dumps(table(deployment)).replace(f'"name": "{first}"', '"name": "name"')
    swapped(deployment, json.loads(renamed.replace(f'"name": "{second}"', '"name": "amount"')))
    deployment.ledger.datasets.reserve_columns("orders", [*columns, "later"], 100)
    put(deployment, 9, [{"_pos": "1", first: "a", second: "1.00"}])
    database = stack.resources.tables_database
    for dialect, catalog in ((Dialect.ATHENA, ""), (Dialect.SPARK, ""), (Dialect.DUCKDB, '"glue".')):
        view = printed(suggest_for_dataset, stack, "orders", 5, dialect).replace("`", '"')
        assert f'FROM {catalog}"{database}"."orders"' in view
        # Iceberg reserves the name.
        assert '"_pos__"' in view
        assert '"_pos"' not in view
        assert not [name for name in (first, second, "later") if f'"{name}"' in view]
    # And DuckDB must load the catalog first
    attach, view = view.split("\n", 1)
    assert attach == "ATTACH IF NOT EXISTS '111122223333' AS glue (TYPE iceberg, ENDPOINT_TYPE 'glue');"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH ':memory:' AS glue; CREATE SCHEMA glue.{database}")
        connection.execute(
            f"CREATE TABLE glue.{database}.orders AS SELECT '1' AS _pos__, 'a' AS name, '1.00' AS amount"
        )
        connection.execute(view)
        assert connection.execute("SELECT _pos__, amount_text FROM orders_typed").fetchall() == [(1, "1.00")]
    # And the local cloud has no catalog for it
    view = printed(suggest_for_dataset, replace(stack, local=True), "orders", 5, Dialect.DUCKDB)
    location = deployment.glue.tables["orders"]["Parameters"]["metadata_location"]
    assert view.endswith(f"FROM iceberg_scan('{location}');\n")
    # And a table from before the dataset's return to Hive gets no new rows
    deployment.configure(datasets=[{"name": "clicks", "prefix": "clicks/", "table": "iceberg"}, {"name": "{folder}"}])
    stack = with_settings(stack, deployment.services)
    assert printed(suggest_for_dataset, stack, "orders", 5, Dialect.SPARK).endswith("FROM `orders`;\n")


def test_the_newest_hours_are_read_one_object_of_each_first(world: World, stack: DeployedStack) -> None:
    for hour in range(5, 10):
        for number in range(2):
            put(world, hour, [{"id": f"{hour}-{number}"}], number)
    assert set(read_sample(stack, "orders", 3).values["id"]) == {"9-0", "8-0", "7-0"}
    assert set(read_sample(stack, "orders", 7).values["id"]) == {f"{hour}-0" for hour in range(5, 10)} | {"9-1", "8-1"}


def test_only_ranges_of_a_large_object_are_read(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: an object with many row groups
    rows = [{"id": f"{number:0100d}"} for number in range(20_000)]
    key = put(world, 9, rows, row_group_size=2_000, compression="none")
    monkeypatch.setattr("cli.catalog.suggest.BUFFER_BYTES", 1 << 14)
    read: list[int] = []
    size = world.raw_s3.head_object(Bucket="lake", Key=key)["ContentLength"]
    get_object = world.raw_s3.get_object

    def record(**request: Any) -> Any:
        answer = get_object(**request)
        read.append(answer["ContentLength"])
        return answer

    monkeypatch.setattr(world.raw_s3, "get_object", record)
    # When
    sample = read_sample(stack, "orders", 1)
    # Then
    assert (sample.rows, len(sample.values["id"])) == (2_000, 2_000)
    assert sum(read) < size / 5


def test_an_object_without_rows_and_one_that_was_deleted_meanwhile_hold_nothing_up(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: the sweep deletes a replaced object after it was listed
    *_, gone = (put(world, hour, ROWS[:hour]) for hour in (0, 1, 2))
    listed = _newest_objects(stack.s3, "lake", "orders", 3)
    world.raw_s3.delete_object(Bucket="lake", Key=gone)
    monkeypatch.setattr("cli.catalog.suggest._newest_objects", lambda *_: listed)
    # When, Then
    found = read_sample(stack, "orders", 3)
    assert (found.objects, found.rows, found.values["id"]) == (2, 1, {"1": 1})


@pytest.mark.parametrize("length", [3, 200])
def test_an_object_that_is_damaged_is_named(world: World, stack: DeployedStack, length: int) -> None:
    key = put(world, 8, ROWS)
    body = world.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read()
    world.raw_s3.put_object(Bucket="lake", Key=key, Body=body[:length])
    expected = (
        f"s3://lake/{key} is not a Parquet file .*: restore it, or run 'hybrid-router reprocess --manifest 2026.*'"
    )
    with pytest.raises(TerminalError, match=expected):
        read_sample(stack, "orders", 1)
    with pytest.raises(TerminalError, match=expected):
        catalog_drop_columns_command(stack, "orders")


@pytest.mark.parametrize("error", [ReadTimeoutError(endpoint_url="s3"), OSError(errno.ESTALE, "stale file handle")])
def test_an_object_is_not_damaged_where_network_or_disk_did_not_give_it(
    world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    put(world, 8, ROWS)
    monkeypatch.setattr(world.raw_s3, "get_object", Mock(side_effect=error))
    with pytest.raises(type(error)) as raised:
        read_sample(stack, "orders", 1)
    assert raised.value is error


def test_a_value_of_others_cannot_command_the_terminal(world: World, stack: DeployedStack, printed: Printed) -> None:
    put(world, 9, [*ROWS, {"amount": "\x1b[2J" + "x" * 100, "id": "4"}])
    output = printed(suggest_for_dataset, stack, "orders", 5, None)
    assert "\x1b" not in output
    assert "x..." in output
    assert output.count("CREATE OR REPLACE") == 3


def test_a_dataset_without_data_is_reported(stack: DeployedStack) -> None:
    with pytest.raises(NotFoundError, match="s3://lake/orders/ has no Parquet object yet: run 'hybrid-router status'"):
        suggest_for_dataset(stack, "orders", 5, None)
    with pytest.raises(UnknownDatasetError, match="no dataset 'clicks': pass one of orders"):
        suggest_for_dataset(stack, "clicks", 5, None)


def test_names_of_a_view_are_unique_and_cannot_end_the_statement() -> None:
    typed = {name: ColumnType(TypeKind.BIGINT) for name in ("a", "a_text")}
    assert text_names(["a", "a_text"], typed) == {"a": "a_text_", "a_text": "a_text_text"}
    assert (quoted('a"b', Dialect.DUCKDB), quoted("a`b", Dialect.SPARK)) == ('"a""b"', "`a``b`")


def test_the_view_for_athena_names_every_column_once() -> None:
    typed = {"a": ColumnType(TypeKind.INSTANT, 1)}
    assert athena_view("lake_dev", "orders", ["a", "b"], typed).splitlines() == [
        'CREATE OR REPLACE VIEW "lake_dev"."orders_typed" AS',
        "SELECT",
        rf"""  CASE WHEN regexp_like("a", '\A(?:{typed["a"].pattern})\z') THEN """
        """CAST(TRY(from_iso8601_timestamp_nanos(replace("a", ' ', 'T'))) AT TIME ZONE 'UTC' AS TIMESTAMP(3)) """
        'END AS "a",',
        '  "a" AS "a_text",',
        '  "b",',
        '  "date",',
        '  "hour"',
        'FROM "lake_dev"."orders"',
    ]


def converted(folder: Path) -> Path:
    """A dataset's folder as `convert` writes it: two hours; the newer one has an additional column."""
    for hour, rows in ((8, ROWS), (9, [{"id": "4", "made": "2026-11-20T09:00:00Z"}])):
        path = folder / "lake" / "orders" / "date=2026-11-20" / f"hour={hour:02}" / "m-g1-00000.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
    return folder / "lake" / "orders"


def test_the_output_of_convert_has_types_without_a_stack(tmp_path: Path, answered: Answered) -> None:
    # Given a folder whose name could be read as a pattern
    folder = converted(tmp_path / "it's [1] * ?")
    # When
    document = answered(catalog_suggest_command, str(folder), schema="catalog-suggest")
    # Then both hours are in the sample, and the view runs
    types = {column["name"]: column["type"] for column in document["columns"]}
    assert types == {"amount": "DECIMAL(38, 2)", "id": "BIGINT", "made": "TIMESTAMP"}
    with duckdb.connect() as database:
        database.execute(document["sql"]["duckdb"])
        query = "SELECT hour, count(made), sum(amount)::VARCHAR, sum(id) FROM orders_typed GROUP BY 1 ORDER BY 1"
        assert database.execute(query).fetchall() == [(8, 0, "84.32", 57), (9, 1, None, 4)]
        refused = "SELECT amount_text, id_text FROM orders_typed WHERE amount IS NULL AND amount_text IS NOT NULL"
        assert database.execute(refused).fetchall() == [("n/a", "2")]
    # And the view has the columns of files that are not in the sample
    assert (
        "`amount`" in answered(catalog_suggest_command, str(folder), files=1, schema="catalog-suggest")["sql"]["spark"]
    )


def test_a_folder_without_hours_or_a_view_of_athena_is_refused(tmp_path: Path) -> None:
    folder = converted(tmp_path)
    with pytest.raises(InvalidInputError, match="such as converted/lake/orders"):
        suggest_for_folder(tmp_path, 5, None)
    with pytest.raises(InvalidInputError, match="--dialect duckdb or spark"):
        suggest_for_folder(folder, 5, Dialect.ATHENA)


@pytest.fixture
def drop(world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Answer]:
    """Drop the columns of orders that no file has, here ``later``."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    put(world, 8, [{"id": "1"}])
    put(world, 9, [{"amount": "1"}])
    return partial(catalog_drop_columns_command, stack, "orders")


def columns(world: World) -> tuple[str, ...]:
    row = world.ledger.datasets.get("orders")
    assert row is not None
    return row.columns


def test_a_column_without_a_file_is_dropped_and_can_return(
    world: World, drop: Callable[[], Answer], answered: Answered, printed: Printed
) -> None:
    for dry_run, left in ((True, ("amount", "id", "later")), (False, ("amount", "id"))):
        answer = answered(drop, dry_run=dry_run)
        assert answer == {"dataset": "orders", "dryRun": dry_run, "files": 2, "dropped": ["later"]}
        assert columns(world) == left
    assert world.ledger.datasets.reserve_columns("orders", ["new"], 3) == ()
    # When the dataset has no file at all
    for key in world.keys("lake"):
        world.raw_s3.delete_object(Bucket="lake", Key=key)
    assert "3 columns dropped of 3, by 0 files" in printed(drop)
    assert columns(world) == ()
    assert world.ledger.datasets.reserve_columns("orders", ["id"], 3) == ()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_conversion_that_begins_and_ends_meanwhile_keeps_its_columns(
    world: World, drop: Callable[[], Answer], monkeypatch: pytest.MonkeyPatch, answered: Answered, is_damaged: bool
) -> None:
    drop_columns = Datasets.drop_columns

    def publish_meanwhile(datasets: Datasets, *given: Any) -> bool:
        key = put(world, 10, [{"later": "x"}])
        if is_damaged:
            world.raw_s3.put_object(Bucket="lake", Key=key, Body=b"damaged")
        return drop_columns(datasets, *given)

    world.ledger.datasets.reserve_columns("orders", ["unused"], 4)
    monkeypatch.setattr(Datasets, "drop_columns", publish_meanwhile)
    if is_damaged:
        # Nothing is dropped if the published columns cannot be read.
        with pytest.raises(TerminalError, match="is not a Parquet file"):
            drop()
    else:
        assert answered(drop)["dropped"] == ["unused"]
    assert columns(world) == ("amount", "id", "later", "unused")[: 4 if is_damaged else 3]


def test_a_conversion_that_the_index_does_not_show_yet_keeps_its_columns(
    world: World, drop: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a run that has claimed a manifest, and an index that catches up while the command waits
    world.claimed(world.queued("a.json"))
    behind = monkeypatch.context()
    behind.__enter__().setattr(Manifests, "open", lambda *_: iter(()))
    monkeypatch.setattr("time.sleep", lambda _: behind.__exit__(None, None, None))
    # When, Then: the second time it stops before anything is read
    for dry_run in (False, True):
        with pytest.raises(InvalidInputError, match="is RUNNING"):
            drop(dry_run=dry_run)
    assert len(columns(world)) == 3


def test_a_signal_after_the_drop_takes_it_back(
    world: World, drop: Callable[[], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a signal while the command reads whether files have the columns by now
    read = drop_columns._columns_of_files

    def fail_after_the_drop(*arguments: Any) -> Iterator[set[str]]:
        if "later" not in columns(world):
            signal.raise_signal(signal.SIGTERM)
        yield from read(*arguments)

    monkeypatch.setattr(drop_columns, "_columns_of_files", fail_after_the_drop)
    # When, Then
    with pytest.raises(KeyboardInterrupt):
        drop()
    assert len(columns(world)) == 3
