"""A table shows one generation of each manifest, whatever happens between the ledger and the catalog."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest

from lake.commit import CommitDocument
from lake.documents import decode_body, get_document
from lake.errors import InvalidInputError, TableStoppedError, TransientError
from lake.layout import parse_s3_uri
from lake.ledger import ManifestRow
from lake.ledger.tables import Tables
from router.iceberg.metadata import BATCH, Metadata, current_schema
from router.sweep.leftovers import delete_table_files
from router.tables import batch, committer
from router.tables.handler import rebuild_table, restore_table
from tests.load.request_counts import counted_requests
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import listed, repair
from tests.unit.router.tables.tabling import (
    by_another_writer,
    commit,
    compacted,
    forced,
    name_of,
    publish,
    row_of,
    shown,
    shown_in_the_end,
    swapped,
    table,
    tabled,
)

MIDNIGHT = replace(PARTITION, hour=0)


def test_a_snapshot_is_kept_from_the_time_at_which_another_one_replaces_it(deployment: Deployment) -> None:
    row = tabled(deployment)
    # Given a table that was unchanged for longer than snapshots are kept, or that was restored just now
    (before,) = table(deployment)["snapshots"]
    statistics = {"snapshot-id": before["snapshot-id"], "statistics-path": "s3://lake/_tables/orders/metadata/a.stats"}
    swapped(deployment, {**by_another_writer(deployment, "append"), "statistics": [statistics]})
    deployment.wait(timedelta(hours=30))
    restore_table(deployment.services, "orders")
    publish(deployment, forced(deployment, row))
    commit(deployment)
    # Then the previous rows can be read for that time
    assert table(deployment)["snapshots"][0] == before
    assert table(deployment)["statistics"] == [statistics]
    assert (shown(deployment, before), shown(deployment)) == ([name_of(row)], [name_of(row, 2)])
    # And not for longer
    deployment.wait(timedelta(hours=24))
    tabled(deployment, "b")
    assert before not in table(deployment)["snapshots"]
    assert table(deployment)["statistics"] == []


def test_objects_that_a_generation_keeps_stay(deployment: Deployment) -> None:
    row = tabled(deployment)
    document = deployment.raw_s3.list_objects_v2(Bucket="control", Prefix="commits/")["Contents"][0]["Key"]
    body = deployment.raw_s3.get_object(Bucket="control", Key=document)["Body"].read()
    publish(deployment, forced(deployment, row), kept=decode_body(CommitDocument, body, "commit document").objects)
    assert commit(deployment) == 2
    assert shown(deployment) == [name_of(row), name_of(row, 2)]


def test_the_catalog_keeps_what_others_have_put_into_the_entry(deployment: Deployment) -> None:
    tabled(deployment)
    # Given columns of another writer, who has added comments to them in the catalog
    metadata = table(deployment)
    struct = {"type": "struct", "fields": [{"id": 1 << 30, "name": "x", "required": False, "type": "long"}]}
    added = {"n": ("long", "bigint"), "s": (struct, "struct<x:bigint>")}
    (schema,) = metadata["schemas"]
    fields = [{"id": (1 << 30) + 5, "name": name, "required": False, "type": kind} for name, (kind, _) in added.items()]
    swapped(deployment, {**metadata, "schemas": [{**schema, "fields": [*schema["fields"], *fields]}]})
    columns = deployment.glue.tables["orders"]["StorageDescriptor"]["Columns"]
    columns[-2:] = [{"Name": name, "Type": kind} for name, (_, kind) in added.items()]
    # And a person's description of the table
    (a,) = [column for column in columns if column["Name"] == "a"]
    a["Comment"] = "an amount"
    described = {"Description": "Orders of the shop", "Owner": "sales"}
    deployment.glue.tables["orders"] |= described
    # When the next batch is committed
    publish(deployment, listed(deployment, "b"))
    assert commit(deployment) == 2
    # Then Glue accepts the entry, and it has their types
    entry = deployment.glue.tables["orders"]
    assert entry | described == entry
    columns = entry["StorageDescriptor"]["Columns"]
    assert [column["Comment"] for column in columns if column["Name"] == "a"] == ["an amount"]
    types = {column["Name"]: column["Type"] for column in columns}
    assert types | {"date": "date", "hour": "int", **{name: kind for name, (_, kind) in added.items()}} == types
    assert {type(kind) for kind in types.values()} == {str}
    # And so does the table that a rebuild creates in its place
    rebuild_table(deployment.services, "orders")
    assert deployment.glue.tables["orders"] | described == deployment.glue.tables["orders"]


def test_an_hour_is_not_built_of_objects_that_are_gone(deployment: Deployment) -> None:
    rows = [publish(deployment, listed(deployment, name)) for name in "ab"]
    commit(deployment)
    compacted(deployment)
    publish(deployment, forced(deployment, rows[1]))
    (key,) = [key for key in deployment.keys("lake", "orders/") if name_of(rows[0]) in key]
    deployment.raw_s3.delete_object(Bucket="lake", Key=key)
    with pytest.raises(TableStoppedError, match="gone or changed"):
        commit(deployment)
    assert shown(deployment) == ["compacted-g0"]


def test_a_manifest_without_a_commit_document_waits_and_holds_back_no_other(deployment: Deployment) -> None:
    # Given three published manifests, one of which has lost its commit document, and two hours to be rebuilt
    commit(deployment)
    rows = [publish(deployment, listed(deployment, name)) for name in "ab"]
    other = publish(deployment, listed(deployment, "c", partition=MIDNIGHT))
    key, body = cut(deployment, rows[0])
    deployment.ledger.tables.list_hour(MIDNIGHT, deployment.now)
    # Then the others are shown
    assert commit(deployment) == 1
    assert shown(deployment) == sorted(map(name_of, [rows[1], other]))
    # And the message names the manifest and what a person has to do
    with pytest.raises(TableStoppedError, match=f"{key} was changed .* restore the object"):
        commit(deployment)
    assert key in str(row_of(deployment).stopped)
    # And an hour that contains this manifest keeps its rows
    deployment.ledger.tables.list_hour(PARTITION, deployment.now)
    with pytest.raises(TableStoppedError):
        commit(deployment)
    assert shown(deployment) == sorted(map(name_of, [rows[1], other]))
    # When the document is restored
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    assert commit(deployment) == 2
    assert shown(deployment) == sorted(map(name_of, [*rows, other]))
    assert commit(deployment) is None
    assert row_of(deployment).stopped is None


def cut(deployment: Deployment, row: ManifestRow) -> tuple[str, bytes]:
    """Truncate the commit document of a manifest; return its key and its earlier content."""
    assert row.published is not None
    key = row.published.document.key
    body = get_document(deployment.raw_s3, "control", key)
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body[:10])
    return key, body


def test_a_batch_that_another_version_has_begun_stops_its_table(deployment: Deployment) -> None:
    row = publish(deployment, listed(deployment, "a"))
    with patch.object(committer, "_apply", Mock(side_effect=Crash)), pytest.raises(Crash):
        commit(deployment)
    deployment.patch.setattr("lake.documents.FORMAT", 99)
    with pytest.raises(TableStoppedError, match="deploy the newer version"):
        commit(deployment)
    assert "tables rebuild orders" in str(row_of(deployment).stopped)
    # When that version continues
    deployment.patch.undo()
    assert commit(deployment) == 1
    assert (shown(deployment), row_of(deployment).stopped) == ([name_of(row)], None)


@pytest.mark.parametrize("damage", ["gone", "cut", "not Iceberg", "Avro"])
def test_a_table_whose_metadata_cannot_be_read_is_stopped(deployment: Deployment, damage: str) -> None:
    rows = [tabled(deployment), publish(deployment, listed(deployment, "b"))]
    entry = deployment.glue.tables["orders"]
    place = parse_s3_uri(entry["Parameters"]["metadata_location"])
    if damage == "gone":
        deployment.raw_s3.delete_object(Bucket=place.bucket, Key=place.key)
    elif damage == "cut":
        deployment.raw_s3.put_object(Bucket=place.bucket, Key=place.key, Body=b'{"format-version": 2, ')
    elif damage == "Avro":
        for key in deployment.keys("lake"):
            if key.endswith(".avro"):
                body = deployment.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read()
                deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=body[:-20])
    else:
        del entry["Parameters"]["metadata_location"]
    with pytest.raises(TableStoppedError, match="run 'hybrid-router tables rebuild orders'"):
        commit(deployment)
    assert "tables rebuild orders" in str(row_of(deployment).stopped)
    # When a person does so, then the table shows everything again
    rebuild_table(deployment.services, "orders")
    assert shown_in_the_end(deployment) == sorted(map(name_of, rows))
    assert row_of(deployment).stopped is None


def by_changed_rows(deployment: Deployment) -> Metadata:
    return by_another_writer(deployment, "append")


def by_partitions(deployment: Deployment) -> Metadata:
    metadata = table(deployment)
    (spec,) = metadata["partition-specs"]
    return {**metadata, "partition-specs": [spec, {**spec, "spec-id": 1}]}


def by_types(deployment: Deployment) -> Metadata:
    """``CREATE OR REPLACE TABLE ... AS SELECT CAST(a AS INT) a, ...``: the column keeps its id, and tags stay."""
    metadata = by_another_writer(deployment, "append")
    schema = current_schema(metadata)
    fields = [{**field, "type": "int"} if field["name"] == "a" else field for field in schema["fields"]]
    number = schema["schema-id"] + 1
    schemas = [*metadata["schemas"], {**schema, "schema-id": number, "fields": fields}]
    return {**metadata, "schemas": schemas, "current-schema-id": number}


@pytest.mark.parametrize(
    ("change", "commands"),
    [
        (by_changed_rows, ["restore", "rebuild"]),
        (lambda world: {**table(world), "properties": {**table(world)["properties"], BATCH: "99"}}, ["rebuild"]),
        (by_partitions, ["rebuild"]),
        (by_types, ["rebuild"]),
        (lambda world: {**table(world), "table-uuid": "11111111-1111-4111-8111-111111111111"}, ["rebuild"]),
    ],
)
def test_a_stopped_table_names_the_commands_that_repair_it(
    deployment: Deployment, change: Callable[[Deployment], Metadata], commands: list[str]
) -> None:
    # Given a table that another writer has changed, and a publish that is pending
    rows = [tabled(deployment), publish(deployment, listed(deployment, "b"))]
    swapped(deployment, change(deployment))
    with pytest.raises(TableStoppedError) as raised:
        commit(deployment)
    assert re.findall(r"'hybrid-router tables (\w+) orders'", str(raised.value)) == commands
    # When, Then
    if commands[0] == "restore":
        restore_table(deployment.services, "orders")
    else:
        with pytest.raises(InvalidInputError, match="run 'hybrid-router tables rebuild orders'"):
            restore_table(deployment.services, "orders")
        rebuild_table(deployment.services, "orders")
    assert shown_in_the_end(deployment) == sorted(map(name_of, rows))


def test_a_restore_keeps_a_batch_that_is_in_the_table_and_not_closed(deployment: Deployment) -> None:
    # Given a round that ended after its swap, and a change by another writer after it
    rows = [tabled(deployment), publish(deployment, listed(deployment, "b"))]
    with patch.object(committer, "_mark", Mock(side_effect=Crash)), pytest.raises(Crash):
        commit(deployment)
    swapped(deployment, by_changed_rows(deployment))
    # When
    assert restore_table(deployment.services, "orders") == {"batch": 2}
    # Then
    expected = sorted(map(name_of, rows))
    assert shown(deployment) == expected
    assert (shown_in_the_end(deployment), row_of(deployment).stopped) == (expected, None)
    row = row_of(deployment)
    assert (row.applied, row.pending) == (2, None)


def test_an_hour_that_a_rebuild_lists_again_is_not_removed_with_the_earlier_batch(deployment: Deployment) -> None:
    row = tabled(deployment)
    rebuild_table(deployment.services, "orders")
    # Given a process that adds the hour to the table while another rebuild begins
    close = Tables.close

    def close_late(tables: Tables, *given: Any) -> None:
        deployment.patch.undo()
        deployment.wait(timedelta(seconds=1))
        rebuild_table(deployment.services, "orders")
        close(tables, *given)

    deployment.patch.setattr(Tables, "close", close_late)
    commit(deployment)
    # Then the hour is added to the new table as well
    assert commit(deployment) == 3
    assert shown(deployment) == [name_of(row)]
    assert not list(deployment.ledger.tables.outbox("orders"))


def test_after_two_rebuilds_the_catalog_has_the_table_of_the_ledger(deployment: Deployment) -> None:
    row = tabled(deployment)
    # Given a rebuild that is overtaken by another one between the ledger and the catalog
    replace_row = Tables.replace

    def replace_and_wait(tables: Tables, *given: Any) -> bool:
        deployment.patch.undo()
        is_replaced = replace_row(tables, *given)
        rebuild_table(deployment.services, "orders")
        return is_replaced

    deployment.patch.setattr(Tables, "replace", replace_and_wait)
    # When, Then
    with pytest.raises(TransientError, match="another process has changed the table orders"):
        rebuild_table(deployment.services, "orders")
    commit(deployment)
    assert shown(deployment) == [name_of(row)]


@pytest.mark.parametrize(("step", "number"), [("_next_metadata", 0), ("follow_setting", 1)])
def test_a_batch_that_a_rebuild_overtakes_stops_nothing(deployment: Deployment, step: str, number: int) -> None:
    deployment.services = replace(deployment.services, optimizer_role="arn:aws:iam::123456789012:role/optimizer")
    rows = [publish(deployment, listed(deployment, name)) for name in "ab"]
    do = getattr(committer, step)

    def rebuilt_meanwhile(*given: Any) -> Any:
        deployment.patch.undo()
        rebuild_table(deployment.services, "orders")
        return do(*given)

    deployment.patch.setattr(committer, step, rebuilt_meanwhile)
    # Then more work is left, and it is done
    assert commit(deployment) == number
    assert (commit(deployment), row_of(deployment).stopped) == (2, None)
    assert shown(deployment) == sorted(map(name_of, rows))


def test_a_rebuild_that_a_batch_overtakes_must_be_repeated(deployment: Deployment) -> None:
    tabled(deployment)

    def change_meanwhile() -> None:
        deployment.glue.before_update = lambda: None
        swapped(deployment, table(deployment))

    deployment.glue.before_update = change_meanwhile
    with pytest.raises(TransientError, match="run the command again"):
        rebuild_table(deployment.services, "orders")


@pytest.mark.parametrize("is_new", [True, False])
def test_a_table_whose_rebuild_is_interrupted_gets_every_hour(deployment: Deployment, *, is_new: bool) -> None:
    # Given two published hours, and a rebuild that ends before it lists one of them
    hours = {"a": PARTITION, "b": MIDNIGHT}
    rows = [publish(deployment, listed(deployment, name, partition=hour)) for name, hour in hours.items()]
    if is_new:
        for row in rows:
            deployment.ledger.tables.forget("orders", f"{row.id}#g1")
    else:
        commit(deployment)
    with patch.object(Tables, "list_hour", Mock(side_effect=Crash)), pytest.raises(Crash):
        rebuild_table(deployment.services, "orders")
    # Then a sweep lists an entry for the table, and the table's next batch adds the hours
    delete_table_files(repair(deployment))
    assert list(deployment.ledger.tables.outbox("orders"))
    commit(deployment)
    assert shown(deployment) == sorted(map(name_of, rows))
    assert commit(deployment) is None


def test_a_table_without_an_hour_is_created_and_stays_empty(deployment: Deployment) -> None:
    assert rebuild_table(deployment.services, "orders") == {"hours": 0}
    assert commit(deployment) == 1
    assert not row_of(deployment).unlisted


def test_hours_that_were_listed_for_the_previous_table_do_not_count_for_the_new_one(deployment: Deployment) -> None:
    tables = deployment.ledger.tables
    before = tables.create("orders", "before")
    assert tables.replace(before, "new")
    tables.note(before, unlisted=None)
    assert tables.get("orders") == replace(before, uuid="new")


@pytest.mark.parametrize(
    ("limit", "has_files", "batches"),
    [("MAX_MANIFESTS", True, [1, 2, 3]), ("MAX_MANIFESTS", False, [1, 2]), ("MAX_FILES", True, [1, 2, 3])],
)
def test_a_large_batch_gets_no_further_hour_or_manifest(
    deployment: Deployment, limit: str, has_files: bool, batches: list[int]
) -> None:
    hours = [replace(PARTITION, hour=hour) for hour in range(3) for _ in "ab"]
    rows = [listed(deployment, f"{number}", partition=hour) for number, hour in enumerate(hours)]
    rows = [publish(deployment, row) for row in rows if has_files]
    deployment.ledger.tables.create("orders", "uuid")
    rebuild_table(deployment.services, "orders")
    deployment.patch.setattr(batch, limit, 2)
    deployment.patch.setattr(batch, "TABLE_REQUESTS", 1)
    # The entries of the generations are in the last batch
    assert [commit(deployment) for _ in batches] == batches
    assert commit(deployment) is None
    # And manifests of later publishes are divided by the same limit
    rows += [publish(deployment, listed(deployment, name)) for name in "xyz"]
    assert [commit(deployment) for _ in "xyz"] == [batches[-1] + 1, batches[-1] + 2, None]
    assert shown(deployment) == sorted(map(name_of, rows))


def test_no_batch_needs_the_files_of_a_later_hour(deployment: Deployment) -> None:
    # Given a table that is rebuilt, with a large hour, and a later hour in which one manifest was converted again and
    # another one cannot be read
    first = [publish(deployment, listed(deployment, name, partition=MIDNIGHT)) for name in "ab"]
    again, damaged = (publish(deployment, listed(deployment, name)) for name in "cd")
    commit(deployment)
    rebuild_table(deployment.services, "orders")
    publish(deployment, forced(deployment, again))
    key, body = cut(deployment, damaged)
    deployment.patch.setattr(batch, "MAX_MANIFESTS", 2)
    assert commit(deployment) == 2
    assert shown(deployment) == sorted(map(name_of, first))
    # Then the hour waits, and no batch starts that could not be finished
    with pytest.raises(TableStoppedError):
        commit(deployment)
    assert row_of(deployment).pending is None
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    assert commit(deployment) == 3
    assert shown(deployment) == sorted([*map(name_of, first), name_of(again, 2), name_of(damaged)])


def test_an_hour_of_the_outbox_is_built_of_all_its_manifests(deployment: Deployment) -> None:
    commit(deployment)
    rows = [publish(deployment, listed(deployment, name)) for name in "ab"]
    other = publish(deployment, listed(deployment, "c", partition=MIDNIGHT))
    # And a manifest without rows, and a manifest that waits
    empty = publish(deployment, listed(deployment, "d"), files=0)
    listed(deployment, "e")
    for row in (*rows, other, empty):
        deployment.ledger.tables.forget("orders", f"{row.id}#g1")
    deployment.ledger.tables.list_hour(PARTITION, deployment.now)
    assert commit(deployment) == 1
    assert shown(deployment) == sorted(map(name_of, rows))
    assert deployment.row(empty.id).is_tabled
    first = deployment.row(rows[0].id).tabled
    deployment.wait(timedelta(hours=1))
    deployment.ledger.tables.list_hour(PARTITION, deployment.now)
    deployment.ledger.tables.list_hour(MIDNIGHT, deployment.now)
    assert commit(deployment) == 2
    assert shown(deployment) == sorted(map(name_of, [*rows, other]))
    # And the row has the time at which readers first saw the generation, not the time at which they saw it again
    second = deployment.row(rows[0].id).tabled
    assert first is not None
    assert second == replace(first, batch=2, snapshot=second.snapshot if second else 0)
    assert commit(deployment) is None


def test_the_objects_of_a_rebuilt_hour_are_looked_up_by_its_listing(deployment: Deployment) -> None:
    # Given a table that is rebuilt, with an hour of many objects: a request for each would outlast the function
    rows = [publish(deployment, listed(deployment, name), files=4) for name in "abc"]
    commit(deployment)
    rebuild_table(deployment.services, "orders")
    # When
    with counted_requests() as counts:
        assert commit(deployment) == 2
    # Then
    assert (counts["HeadObject"], counts["ListObjectsV2"]) == (0, 1)
    assert shown(deployment) == sorted([*map(name_of, rows)] * 4)
