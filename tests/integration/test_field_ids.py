"""Files of a dataset with an Iceberg table have field ids, which are the same in all of its files."""

import io
from dataclasses import replace
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lake.layout import lake_prefix
from lake.ledger import Tabled
from lake.ledger.datasets import field_id
from lake.settings.model import parse_settings
from tests.integration.conversion_world import ConversionWorld
from tests.unit.lake.test_dataset_and_arrival_rows import WITH_ONE_FIELD_ID
from verify.manifest_check import check_manifest
from verify.stack import Stack

FIRST, SECOND = WITH_ONE_FIELD_ID


@pytest.fixture(autouse=True)
def _table(world: ConversionWorld) -> None:
    table = {"datasets": [{"name": "orders", "prefix": "orders/", "table": "iceberg"}]}
    world.settings = parse_settings({"stage": "test", **table})


def ids(world: ConversionWorld, manifest: str) -> dict[str, int | None]:
    """Columns of a manifest's only file, and their field ids."""
    prefix = lake_prefix(world.row(manifest).partition, manifest, 1)
    (body,) = (
        body for key, body in zip(world.keys("lake"), world.bodies("lake"), strict=True) if key.startswith(prefix)
    )
    schema = pq.read_schema(io.BytesIO(body))
    numbers = [(field.metadata or {}).get(b"PARQUET:field_id") for field in schema]
    return {name: None if number is None else int(number) for name, number in zip(schema.names, numbers, strict=True)}


def test_an_id_depends_on_the_name_alone(world: ConversionWorld, spark: SparkSession) -> None:
    first = world.enqueue([world.put("orders/a.json", b'{"a":1,"_pos":2}')])
    second = world.enqueue([world.put("orders/b.json", b'{"b":1,"a":2}')])
    other = world.enqueue([world.put("visits/c.json", b'{"a":1}')], dataset="visits")
    world.convert([first, second, other], spark)
    assert ids(world, first) == {name: field_id(name) for name in ("a", "_pos", "_rescued")}
    assert ids(world, second) == {name: field_id(name) for name in ("b", "a", "_rescued")}
    # And a dataset with a Hive table has none, because a person may add its files to any table
    assert ids(world, other) == {"a": None, "_rescued": None}


def test_two_manifests_that_meet_columns_with_one_id_at_once(world: ConversionWorld, spark: SparkSession) -> None:
    # Given
    bodies = {"a": FIRST, "b": SECOND}
    manifests = [
        world.enqueue([world.put(f"orders/{name}.json", f'{{"{column}":"{name}"}}'.encode())])
        for name, column in bodies.items()
    ]
    # When
    world.convert(manifests, spark)
    # Then: one of them keeps its ids, the other was converted again without any, in an attempt that does not count
    found = [ids(world, manifest) for manifest in manifests]
    (numbered,) = (columns for columns in found if None not in columns.values())
    (unnumbered,) = (columns for columns in found if set(columns.values()) == {None})
    dataset = world.ledger.datasets.get("orders")
    assert dataset is not None
    assert dataset.unnumbered == {*unnumbered} - {"_rescued"}
    assert [world.row(manifest).tries for manifest in manifests] == [1, 1]
    assert any("field id of another one" in line for line in world.log_lines)
    assert {value for row in world.lake() for value in row.values()} == {"a", "b"}
    assert world.unfinished_uploads() == []
    # And later files without that column have ids
    later = world.enqueue([world.put("orders/c.json", b'{"c":1}')])
    (name,) = {*numbered} - {"_rescued"}
    last = world.enqueue([world.put("orders/d.json", f'{{"{name}":1,"c":2}}'.encode())])
    world.convert([later, last], spark)
    assert None not in ids(world, later).values()
    assert ids(world, last)[name] == field_id(name)


def test_the_verification_finds_columns_that_the_table_does_not_show(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given
    manifest = world.enqueue([world.put("orders/a.json", b'{"a":1,"b":2}')])
    world.convert([manifest], spark)
    row = world.row(manifest)
    assert row.published is not None
    world.ledger.manifests.mark_tabled(row, Tabled(row.generation, row.published.document, 1, 1, "2026-03-04"))
    table = Mock(**{"hidden.return_value": [("b", field_id("b"))]})
    # When
    arguments = (world.s3, world.ledger, world.resources, world.settings, "orders", world.clock)
    stack = replace(Stack.of(*arguments), table=table)
    checked = check_manifest(stack, world.row(manifest), None)
    # Then
    (difference,) = checked.report.differences
    assert set(table.hidden.call_args.args[0]) == {(name, field_id(name)) for name in ("a", "b", "_rescued")}
    rebuild = "run 'hybrid-router tables rebuild orders'"
    assert difference.problem == f"the Iceberg table does not show its column b: {rebuild}"


def test_one_file_with_both_columns(world: ConversionWorld, spark: SparkSession) -> None:
    manifest = world.enqueue([world.put("orders/a.json", f'{{"{SECOND}":1,"{FIRST}":2}}'.encode())])
    world.convert([manifest], spark)
    assert world.row(manifest).state == "DONE"
    assert set(ids(world, manifest).values()) == {None}
    assert world.lake() == [{SECOND: "1", FIRST: "2"}]
