"""pyiceberg, DuckDB and Polars read what the metadata of an Iceberg table says; test_iceberg_in_spark.py has Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from pyiceberg.table import StaticTable

from local.duckdb_iceberg import duckdb_with_iceberg
from router.iceberg.metadata import METADATA_COLUMNS, NAME_MAPPING
from tests.unit.lake.test_reserve_columns import WITH_ONE_FIELD_ID
from tests.unit.router.iceberg.local_table import LocalTable, normal_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Read = Callable[[str, str], Iterable[dict[str, Any]]]

EVENING, MIDNIGHT = "2026-11-20T23", "2026-11-21T00"


def by_pyiceberg(document: str, condition: str) -> Iterable[dict[str, Any]]:
    rows: list[dict[str, Any]] = StaticTable.from_metadata(document).scan(condition).to_arrow().to_pylist()
    return rows


def by_duckdb(document: str, condition: str) -> Iterable[dict[str, Any]]:
    with duckdb_with_iceberg() as connection:
        table = connection.sql(f"FROM iceberg_scan('{document}') WHERE {condition}").to_arrow_table()
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows


def by_polars(document: str, condition: str) -> Iterable[dict[str, Any]]:
    frame = pl.scan_iceberg(StaticTable.from_metadata(document))
    return pl.SQLContext(t=frame).execute(f"SELECT * FROM t WHERE {condition}").collect().to_dicts()


READERS = pytest.mark.parametrize("read", [by_pyiceberg, by_duckdb, by_polars])
ALL = "hour >= 0"


@pytest.fixture(autouse=True)
def _planner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    """Two hours, one of them at midnight; three manifests with different columns."""
    table = LocalTable(tmp_path)
    table.add("a-g1", EVENING, [{"id": "1", "price": "1.10"}, {"id": "2", "price": "1E400"}])
    other = [{"id": "3", "_pos": "reserved", "_file": "as well", "date__": "a key"}]
    table.add("b-g1", MIDNIGHT, other, field_ids=False)
    table.commit(["a-g1", "b-g1"], columns=["_rescued"])
    return table


@READERS
def test_rows_of_the_first_batch(read: Read, table: LocalTable) -> None:
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1")


@READERS
def test_a_reader_that_ignores_the_name_mapping_sees_columns_by_their_field_ids(read: Read, table: LocalTable) -> None:
    table.add("d-g1", EVENING, [{"id": "7", "_pos": "reserved", "date__": "a key"}])
    table.commit(["d-g1"], clear=[table.files["b-g1"][0].hour])
    del table.metadata["properties"][NAME_MAPPING]
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "d-g1")


@READERS
def test_columns_with_one_field_id_are_two_columns(read: Read, table: LocalTable) -> None:
    first, second = WITH_ONE_FIELD_ID
    table.add("d-g1", EVENING, [{first: "x"}])
    table.add("e-g1", EVENING, [{second: "y"}, {first: "x", second: "z"}], field_ids=False)
    table.commit(["d-g1", "e-g1"], unnumbered=[second])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1", "d-g1", "e-g1")


@READERS
def test_late_columns_and_a_replaced_generation(read: Read, table: LocalTable) -> None:
    table.add("a-g2", EVENING, [{"id": "1", "late": "ü"}])
    table.add("c-g1", MIDNIGHT, [{"later": "x"}])
    table.commit(["a-g2", "c-g1"], ["a-g1"])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g2", "b-g1", "c-g1")


@READERS
def test_each_reserved_name_is_a_column(read: Read, table: LocalTable) -> None:
    table.add("d-g1", MIDNIGHT, [{name: f"value of {name}" for name in METADATA_COLUMNS}])
    table.commit(["d-g1"])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1", "d-g1")


@READERS
def test_hours_are_pruned_right_when_manifests_were_merged(read: Read, table: LocalTable) -> None:
    names = ["a-g1", "b-g1"]
    for number in range(120):
        hour = number % 5
        names.append(f"{number:03d}-g1")
        table.add(names[-1], f"2026-11-21T{hour:02d}", [{"id": names[-1]}])
        table.commit([names[-1]], [names.pop(5)] if number % 7 == 6 else ())
    wanted = [name for name in names if table.files[name][2].hour == 0]
    assert normal_rows(read(table.document, "date = '2026-11-21' AND hour = 0")) == table.rows_of(*wanted)


@READERS
def test_a_batch_without_files_shows_nothing_new(read: Read, table: LocalTable) -> None:
    table.commit([])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1")


@READERS
def test_an_hour_that_is_cleared_has_its_new_files_only(read: Read, table: LocalTable) -> None:
    table.add("e-g1", EVENING, [{"id": "9"}])
    table.commit(["e-g1"], clear=[table.files["a-g1"][0].hour])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("e-g1", "b-g1")


@READERS
def test_ten_thousand_columns(read: Read, table: LocalTable) -> None:
    table.commit([], columns=[f"column_{number}" for number in range(10_000)])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1")
