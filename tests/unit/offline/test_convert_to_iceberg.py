"""`hybrid-router convert --table`: Iceberg tables whose readers see each file once, in one version."""

import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.types import LongType

from cli.errors import ExitCode
from cli.offline import iceberg_tables
from cli.offline.convert import Request, convert_files
from cli.offline.iceberg_tables import open_catalog
from local.duckdb_iceberg import duckdb_with_iceberg
from router.iceberg.metadata import NAME_MAPPING
from tests.unit.offline.conftest import Convert, convert_until_killed, request


def table_of(call: Request, dataset: str = "orders") -> Table:
    return open_catalog(call.output).load_table(("lake", dataset))


def rows_of(call: Request) -> Counter[str]:
    """The rows that pyiceberg and DuckDB find in the table of the orders."""
    table = table_of(call)
    found = normal(table.scan().to_arrow())
    with duckdb_with_iceberg() as connection:
        assert normal(connection.sql(f"FROM iceberg_scan('{table.metadata_location}')").to_arrow_table()) == found
    return found


def normal(table: pa.Table) -> Counter[str]:
    rows: list[dict[str, Any]] = table.drop_columns(["date", "hour"]).to_pylist()
    return Counter(json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows)


@pytest.fixture
def call(tmp_path: Path) -> Request:
    """Two files of orders that are converted together, in a folder that gets tables."""
    folder = tmp_path / "in" / "orders"
    folder.mkdir(parents=True)
    (folder / "a.ndjson").write_text('{"a": 1, "_pos": "x"}\n')
    (folder / "b.ndjson").write_text('{"a": 2}\n')
    return replace(request(tmp_path / "in", output=tmp_path / "out #1? é%20"), with_tables=True)


BEFORE = Counter(['{"a": "1", "_pos__": "x"}', '{"a": "2"}'])
AFTER = Counter(['{"a": "1", "_pos__": "x"}', '{"a": "2"}', '{"a": "3", "late": "y"}'])


def add_late_file(call: Request) -> None:
    (Path(call.search.names[0]) / "orders" / "late.ndjson").write_text('{"a": 3, "late": "y"}\n')


def grown(call: Request) -> Request:
    """The folder was converted; then a line was added to one of its files."""
    convert_files(call)
    with (Path(call.search.names[0]) / "orders" / "b.ndjson").open("a") as file:
        file.write('{"a": 3, "late": "y"}\n')
    return replace(call, replace=True, with_tables=False)


def test_a_later_call_extends_the_table_in_one_snapshot(call: Request, convert: Convert) -> None:
    convert_files(call)
    assert rows_of(call) == BEFORE
    add_late_file(call)
    # When the option is not passed again
    _, summary = convert(replace(call, with_tables=False))
    # Then
    assert rows_of(call) == AFTER
    first, second = table_of(call).snapshots()
    assert summary["snapshots"] == {"orders": str(second.snapshot_id)}
    assert second.parent_snapshot_id == first.snapshot_id
    # And a call that finds nothing new changes nothing
    convert_files(call)
    assert table_of(call).current_snapshot() == second


@pytest.mark.parametrize("step", range(10))
def test_readers_of_a_replacement_that_is_killed_see_old_or_new_rows(call: Request, step: int) -> None:
    replacing = grown(call)
    if convert_until_killed(replacing, step):
        assert rows_of(call) in (BEFORE, AFTER)
    convert_files(replacing)
    assert rows_of(call) == AFTER
    # And the snapshot whose files were deleted is not offered
    assert [snapshot.sequence_number for snapshot in table_of(call).snapshots()] == [2]
    assert len(list(call.output.rglob("*.parquet"))) == 1


def other_rows(table: Table) -> None:
    shown = table.scan().to_arrow()
    table.overwrite(shown.set_column(shown.column_names.index("a"), "a", pa.array(["other", "other"])))


def other_partitions(table: Table) -> None:
    with table.update_spec() as spec:
        spec.add_identity("a")


def no_name_mapping(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.remove_properties(NAME_MAPPING)


def number_of_the_name(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("late", LongType())


def without_a_column(table: Table) -> None:
    with table.update_schema() as schema:
        schema.delete_column("a")


@pytest.mark.parametrize(
    "change", [other_rows, other_partitions, no_name_mapping, number_of_the_name, without_a_column]
)
def test_what_another_program_changes_in_the_table_is_undone(call: Request, change: Callable[[Table], None]) -> None:
    convert_files(call)
    change(table_of(call))
    add_late_file(call)
    assert convert_files(call).code == ExitCode.OK
    rows = [json.loads(row.replace("late__", "late")) for row in rows_of(call).elements()]
    assert sorted(rows, key=lambda row: row["a"]) == [json.loads(row) for row in AFTER]


def test_a_key_whose_name_another_program_gave_to_a_column_gets_a_column_of_its_own(call: Request) -> None:
    convert_files(call)
    with table_of(call).update_schema() as schema:
        schema.rename_column("a", "late")
    # When a file with both keys is converted
    add_late_file(call)
    convert_files(call)
    # Then
    assert rows_of(call) == Counter(['{"late": "1", "_pos__": "x"}', '{"late": "2"}', '{"late": "3", "late__": "y"}'])


def test_a_table_continues_after_the_document_of_another_program(call: Request) -> None:
    # Given a compressed document with a higher number and without an optional member
    convert_files(call)
    before, catalog, name = table_of(call), open_catalog(call.output), ("lake", "orders")
    document = json.loads(Path(before.metadata_location).read_text())
    del document["metadata-log"]
    location = f"{before.location()}/metadata/00041-x.gz.metadata.json"
    Path(location).write_bytes(gzip.compress(json.dumps(document).encode()))
    catalog.drop_table(name)
    catalog.register_table(name, location)
    # When
    add_late_file(call)
    convert_files(call)
    # Then the same table continues, and readers without a catalog find its newest document by its name
    assert rows_of(call) == AFTER
    assert table_of(call).metadata.table_uuid == before.metadata.table_uuid
    assert "/00042-" in table_of(call).metadata_location


def test_a_program_that_commits_at_the_same_time_is_reported(
    call: Request, monkeypatch: pytest.MonkeyPatch, convert: Convert
) -> None:
    convert_files(call)
    add_late_file(call)
    swap = iceberg_tables._swap

    def change_meanwhile(*given: Any) -> None:
        number_of_the_name(table_of(call))
        swap(*given)

    monkeypatch.setattr(iceberg_tables, "_swap", change_meanwhile)
    code, summary = convert(call)
    assert code == ExitCode.NEGATIVE
    assert "without this file the next call recreates the tables" in summary["stopped"]
    # And the next call continues
    monkeypatch.undo()
    assert convert_files(call).code == ExitCode.OK
    assert sum(rows_of(call).values()) == 3


def test_a_copy_of_a_folder_writes_nothing_into_the_original(call: Request, tmp_path: Path) -> None:
    growing = grown(call)
    copy = replace(growing, output=Path(shutil.copytree(call.output, tmp_path / "copy")))
    before = sorted(call.output.rglob("*"))
    convert_files(copy)
    assert sorted(call.output.rglob("*")) == before
    assert (rows_of(call), rows_of(copy)) == (BEFORE, AFTER)
    # And each folder continues on its own
    convert_files(growing)
    assert (rows_of(call), rows_of(copy)) == (AFTER, AFTER)


@pytest.mark.parametrize("name", ["*.metadata.json", "snap-*.avro", "manifest-*.avro"])
@pytest.mark.parametrize("left", [None, slice(0, -40), slice(0)])
def test_a_table_whose_document_is_lost_is_recreated(call: Request, name: str, left: slice | None) -> None:
    # Given a document that was deleted, truncated, or left empty by a power failure
    convert_files(call)
    for document in call.output.rglob(name):
        body = document.read_bytes()
        document.unlink()
        if left is not None:
            document.write_bytes(body[left])
    assert convert_files(call).code == ExitCode.OK
    assert rows_of(call) == BEFORE


def test_a_damaged_catalog_stops_the_call_and_can_be_removed(call: Request, convert: Convert) -> None:
    convert_files(call)
    catalog = call.output / "tables" / "catalog.db"
    catalog.write_bytes(b"x" * 5000)
    code, summary = convert(call)
    assert code == ExitCode.NEGATIVE
    assert summary["stopped"].startswith(f"{catalog}: file is not a database; without this file the next call")
    # And the advice of the message works
    catalog.unlink()
    assert convert_files(replace(call, with_tables=False)).code == ExitCode.OK
    assert rows_of(call) == BEFORE


def test_what_a_person_has_deleted_of_the_lake_leaves_the_table(call: Request, tmp_path: Path) -> None:
    convert_files(call)
    add_late_file(call)
    (gone,) = call.output.glob("lake/**/*.parquet")
    convert_files(call)
    gone.unlink()
    convert_files(call)
    assert rows_of(call) == AFTER - BEFORE
    # Also if the table is recreated because the folder was moved; the rows of its former place are gone
    moved = replace(call, output=call.output.rename(tmp_path / "moved"), with_tables=False)
    assert convert_files(moved).code == ExitCode.OK
    assert rows_of(moved) == AFTER - BEFORE
    assert (call.output.exists(), len(list(moved.output.rglob("*.metadata.json")))) == (False, 2)


def test_a_folder_whose_path_a_table_cannot_name_has_no_table(call: Request, tmp_path: Path, convert: Convert) -> None:
    code, summary = convert(replace(call, output=tmp_path / os.fsdecode(b"out \xff")))
    assert (code, summary["rows"]) == (ExitCode.NEGATIVE, 2)
    assert "without this file" in summary["stopped"]


def test_a_table_of_files_without_a_row_is_empty(call: Request) -> None:
    for file in (Path(call.search.names[0]) / "orders").iterdir():
        file.write_bytes(b"\n")
    convert_files(call)
    assert open_catalog(call.output).list_tables("lake") == []
