"""Spark, pyiceberg, DuckDB and Polars read the Iceberg tables that the committer writes; Spark also compacts them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from lake.ledger.datasets import field_id
from lake.manifest import Partition
from local.duckdb_iceberg import duckdb_with_iceberg
from local.spark_iceberg import SparkSql, spark_with_iceberg
from router.iceberg.commit import Batch, MissingFilesError, commit_batch
from router.iceberg.metadata import (
    METADATA_COLUMNS,
    NAME_MAPPING,
    DataFile,
    Metadata,
    batch_of,
    foreign_change,
    hour_of,
    new_metadata,
    table_column,
)
from tests.unit.lake.test_dataset_and_arrival_rows import WITH_ONE_FIELD_ID

Read = Callable[[str, str], Iterable[dict[str, Any]]]
Row = Mapping[str, str]

EVENING, MIDNIGHT = "2026-11-20T23", "2026-11-21T00"
REWRITE = "options => map('rewrite-all', 'true', 'min-input-files', '1')"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def sql(warehouse: Path) -> Iterator[SparkSql]:
    with spark_with_iceberg(warehouse) as sql:
        yield sql


@dataclass
class LocalTable:
    """A table on the disk that Spark knows by the name of its folder, its files, and the expected rows."""

    folder: Path
    metadata: Metadata = field(init=False)
    files: dict[str, tuple[DataFile, Sequence[Row], Partition]] = field(default_factory=dict)
    now: int = 1_700_000_000_000
    """Before today: Spark refuses a table whose last snapshot is of tomorrow."""
    version: int = 0

    def __post_init__(self) -> None:
        (self.folder / "table/metadata").mkdir(parents=True)
        self.metadata = new_metadata(f"file://{self.folder}/table", "9c12d441-03fe-4693-9a96-a0705ddf69c1", 0, self.now)

    def read(self, path: str) -> bytes:
        return Path(path.removeprefix("file://")).read_bytes()

    def write(self, path: str, body: bytes) -> None:
        Path(path.removeprefix("file://")).write_bytes(body)

    def add(self, name: str, hour: str, rows: Sequence[Row], *, field_ids: bool = True) -> None:
        """Write a Parquet file of strings with exactly the columns of its rows."""
        partition = Partition.parse(f"orders#{hour}")
        folder = self.folder / "lake" / f"date={partition.date}" / f"hour={partition.hour:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.parquet"
        columns = dict.fromkeys(name for row in rows for name in row)
        ids = {name: {"PARQUET:field_id": str(field_id(name))} if field_ids else None for name in columns}
        schema = pa.schema([pa.field(name, pa.string(), metadata=ids[name]) for name in columns])
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema), path)
        file = DataFile(f"file://{path}", path.stat().st_size, len(rows), hour_of(partition))
        self.files[name] = (file, rows, partition)

    def commit(self, add: Iterable[str], remove: Iterable[str] = (), columns: Iterable[str] = (), **other: Any) -> None:
        """The next batch, with files that were already written."""
        self.now += 60_000
        added, removed = ([self.files[name][0] for name in names] for names in (add, remove))
        known = dict.fromkeys(name for _, rows, _ in self.files.values() for row in rows for name in row)
        batch = Batch(batch_of(self.metadata) + 1, added, removed, columns=[*known, *columns], **other)
        self.metadata = commit_batch(self.metadata, self, batch, self.now, 0)

    def reload(self) -> None:
        """Read the table as another program has changed it."""
        folder = self.folder / "table/metadata"
        self.version = int((folder / "version-hint.text").read_text())
        while (folder / f"v{self.version + 1}.metadata.json").exists():
            self.version += 1
        self.metadata = json.loads((folder / f"v{self.version}.metadata.json").read_text())

    @property
    def document(self) -> str:
        """Path of the metadata document, under the name that Hadoop's catalog expects as well."""
        self.version += 1
        path = self.folder / f"table/metadata/v{self.version}.metadata.json"
        path.write_text(json.dumps(self.metadata))
        (path.parent / "version-hint.text").write_text(str(self.version))
        return str(path)

    def rows_of(self, *names: str) -> Counter[str]:
        """The rows of these files, as readers of the table show them."""
        found: Counter[str] = Counter()
        for name in names:
            _, rows, hour = self.files[name]
            for row in rows:
                shown = {table_column(column): value for column, value in row.items()}
                found[normal({**shown, "date": hour.date, "hour": hour.hour})] += 1
        return found

    @property
    def name(self) -> str:
        return f"local.{self.folder.name}.table"

    def show(self) -> None:
        """Let Spark see the last batch; raise ``FileExistsError`` if Spark has committed since the table was read."""
        (self.folder / f"table/metadata/v{self.version + 1}.metadata.json").touch(exist_ok=False)
        assert self.document

    def commit_and_show(self, *arguments: Any, **options: Any) -> None:
        self.commit(*arguments, **options)
        self.show()


def normal(row: Mapping[str, Any]) -> str:
    """A row without its NULLs, as text."""
    return json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True, default=str)


def normal_rows(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The multiset of the rows that a reader has found."""
    return Counter(map(normal, rows))


@pytest.fixture
def table(warehouse: Path, request: pytest.FixtureRequest) -> LocalTable:
    """Two hours, one of them at midnight; the evening has three files, two of them of minimum size."""
    folder = warehouse / re.sub(r"\W", "_", str(request.node.name))
    folder.mkdir()
    table = LocalTable(folder)
    table.add("a-g1", EVENING, [{"id": "1", "price": "1.10"}, {"id": "2", "price": "1E400"}])
    table.add("b-g1", MIDNIGHT, [{"id": "3", "date__": "a key"}], field_ids=False)
    table.add("c-g1", EVENING, [{"id": "4", "_pos": "reserved", "_file": "as well"}])
    table.commit_and_show(["a-g1", "b-g1", "c-g1"], columns=["_rescued"])
    return table


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


@pytest.fixture(params=[by_pyiceberg, by_duckdb, by_polars, None], ids=["pyiceberg", "duckdb", "polars", "spark"])
def read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Read a table, given its metadata document and a condition."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    if request.param is not None:
        return request.param  # type: ignore[no-any-return]
    sql: SparkSql = request.getfixturevalue("sql")
    return lambda document, where: sql(f"SELECT * FROM local.{Path(document).parts[-4]}.table WHERE {where}")


ALL = "hour >= 0"
OF_MIDNIGHT = "date = '2026-11-21' AND hour = 0"


def test_rows_with_reserved_and_late_columns(read: Read, table: LocalTable) -> None:
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1", "c-g1")
    table.add("d-g1", MIDNIGHT, [{name: f"value of {name}" for name in METADATA_COLUMNS}, {"late": "ü"}])
    table.add("a-g2", EVENING, [{"id": "1", "later": "x"}])
    table.commit(["d-g1", "a-g2"], ["a-g1"])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g2", "b-g1", "c-g1", "d-g1")
    # And the hours of midnight are not NULL
    assert normal_rows(read(table.document, OF_MIDNIGHT)) == table.rows_of("b-g1", "d-g1")


def test_a_reader_that_ignores_the_name_mapping_sees_columns_by_their_field_ids(read: Read, table: LocalTable) -> None:
    table.add("d-g1", EVENING, [{"id": "7", "_pos": "reserved", "date__": "a key"}])
    table.commit(["d-g1"], clear=[table.files["b-g1"][0].hour])
    del table.metadata["properties"][NAME_MAPPING]
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "c-g1", "d-g1")


def test_columns_with_one_field_id_are_two_columns(read: Read, table: LocalTable) -> None:
    first, second = WITH_ONE_FIELD_ID
    table.add("d-g1", EVENING, [{first: "x"}])
    table.add("e-g1", EVENING, [{second: "y"}, {first: "x", second: "z"}], field_ids=False)
    table.commit(["d-g1", "e-g1"], unnumbered=[second])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1", "c-g1", "d-g1", "e-g1")


def test_hours_are_pruned_right_when_manifests_were_merged(read: Read, table: LocalTable) -> None:
    names = ["a-g1", "b-g1", "c-g1"]
    for number in range(120):
        names.append(f"{number:03d}-g1")
        table.add(names[-1], f"2026-11-21T{number % 5:02d}", [{"id": names[-1]}])
        table.commit([names[-1]], [names.pop(5)] if number % 7 == 6 else ())
    selected = [name for name in names if table.files[name][2].hour == 0]
    assert normal_rows(read(table.document, OF_MIDNIGHT)) == table.rows_of(*selected)
    assert normal_rows(read(table.document, ALL)) == table.rows_of(*names)


def test_ten_thousand_columns(read: Read, table: LocalTable) -> None:
    table.commit([], columns=[f"column_{number}" for number in range(10_000)])
    assert normal_rows(read(table.document, ALL)) == table.rows_of("a-g1", "b-g1", "c-g1")


def rows(sql: SparkSql, table: LocalTable) -> Counter[str]:
    return normal_rows(sql(f"SELECT * FROM {table.name}"))


def compact(sql: SparkSql, table: LocalTable) -> None:
    name = table.name.removeprefix("local.")
    sql(f"CALL local.system.rewrite_data_files(table => '{name}', {REWRITE})")
    table.reload()


def replace_a(table: LocalTable) -> None:
    """The next generation of a manifest, as the committer adds it: by its files, or with the whole hour."""
    table.add("a-g2", EVENING, [{"id": "1", "late": "x"}])
    while True:
        table.reload()
        try:
            try:
                table.commit_and_show(["a-g2"], ["a-g1"])
            except MissingFilesError:
                table.commit_and_show(["a-g2", "c-g1"], clear=[table.files["a-g1"][0].hour])
        except FileExistsError:
            continue
        return


@pytest.mark.parametrize("hour", ["int", "bigint"])
def test_a_compaction_leaves_rows_and_batch(sql: SparkSql, table: LocalTable, hour: str) -> None:
    # Given a type that another writer may have given to a partition column
    sql(f"ALTER TABLE {table.name} ALTER COLUMN hour TYPE {hour}")
    compact(sql, table)
    assert rows(sql, table) == table.rows_of("a-g1", "b-g1", "c-g1")
    assert batch_of(table.metadata) == 1
    assert foreign_change(table.metadata) is None
    # And its files have been removed
    with pytest.raises(MissingFilesError):
        table.commit([], ["a-g1"])
    # And a replacement
    replace_a(table)
    assert rows(sql, table) == table.rows_of("a-g2", "b-g1", "c-g1")
    # And another compaction
    compact(sql, table)
    assert rows(sql, table) == table.rows_of("a-g2", "b-g1", "c-g1")


def test_a_replacement_during_a_compaction(sql: SparkSql, table: LocalTable) -> None:
    failed: list[str] = []

    def run() -> None:
        try:
            compact(sql, table)
        except RuntimeError as error:
            failed.append(str(error))

    folder = Path(table.folder) / "table" / "data"
    compaction = Thread(target=run)
    compaction.start()
    # Spark has planned it by the time it writes, and may have ended: both must be correct.
    while compaction.is_alive() and not list(folder.rglob("*.parquet")):
        compaction.join(0.01)
    replace_a(table)
    compaction.join()
    assert rows(sql, table) == table.rows_of("a-g2", "b-g1", "c-g1")
    assert all("Missing required files to delete" in text or "already exists" in text for text in failed), failed


def test_an_append_next_to_deletes_of_rows_and_a_renamed_column(sql: SparkSql, table: LocalTable) -> None:
    sql(f"ALTER TABLE {table.name} RENAME COLUMN price TO amount")
    sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    sql(f"DELETE FROM {table.name} WHERE id = '2'")
    table.reload()
    change = foreign_change(table.metadata)
    assert change is not None
    assert "another writer has changed its rows" in change
    table.add("e-g1", EVENING, [{"id": "5", "price": "7"}])
    table.commit_and_show(["e-g1"])
    found = {row["id"]: row["amount"] for row in sql(f"SELECT id, amount FROM {table.name}")}
    assert found == {"1": "1.10", "3": None, "4": None, "5": "7"}


@pytest.mark.parametrize("procedure", ["expire_snapshots", "remove_orphan_files"])
def test_other_programs_do_not_delete_objects(sql: SparkSql, table: LocalTable, procedure: str) -> None:
    with pytest.raises(RuntimeError, match="GC is disabled"):
        sql(f"CALL local.system.{procedure}(table => '{table.name.removeprefix('local.')}')")


def test_manifests_that_spark_has_rewritten_are_kept(sql: SparkSql, table: LocalTable) -> None:
    sql(f"CALL local.system.rewrite_manifests('{table.name.removeprefix('local.')}')")
    table.reload()
    replace_a(table)
    assert rows(sql, table) == table.rows_of("a-g2", "b-g1", "c-g1")
