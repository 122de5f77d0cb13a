"""An Iceberg table's content of an hour is compared with what is published, by an independent reader."""

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock, patch

import pytest

from cli.inspect.iceberg_table import IcebergTable
from lake.ledger import ManifestRow
from lake.ledger.datasets import field_id
from lake.ledger.table import MAX_BATCH_KEYS
from router.iceberg.commit import Batch, commit_batch
from router.iceberg.metadata import NAME_MAPPING, DataFile, with_columns
from router.tables import committer
from router.tables.batch import TableCatalog
from router.tables.handler import rebuild_table
from tests.unit.lake.faults import Crash
from tests.unit.lake.test_dataset_and_arrival_rows import WITH_ONE_FIELD_ID
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import listed
from tests.unit.router.tables.tabling import TABLES, by_another_writer, commit, forced, publish, swapped, table
from verify import hours as module
from verify.hours import CHANGED, Effort, HoursCheck
from verify.manifest_check import check_manifest
from verify.report import HourReport
from verify.stack import Hours, Stack
from verify.table_check import check_table


@pytest.fixture
def rows(deployment: Deployment) -> list[ManifestRow]:
    """Two manifests of an hour, one of them published twice, and both in the table; another hour has one as well."""
    deployment.configure(datasets=TABLES)
    first, second = (publish(deployment, listed(deployment, name)) for name in "ab")
    publish(deployment, listed(deployment, "c", partition=replace(PARTITION, hour=0)))
    commit(deployment)
    again = publish(deployment, forced(deployment, first))
    commit(deployment)
    return [deployment.row(row.id) for row in (again, second)]


def reader(deployment: Deployment) -> IcebergTable:
    services, hours = deployment.services, Hours("orders", PARTITION.stamp, PARTITION.stamp)
    return IcebergTable(services.s3, services.glue, services.resources.tables_database, hours)


def stack_of(deployment: Deployment) -> Stack:
    services = deployment.services
    stack = Stack.of(
        deployment.raw_s3, services.ledger, services.resources, services.settings, "orders", services.clock
    )
    return replace(stack, table=reader(deployment))


def hours_check(deployment: Deployment) -> HoursCheck:
    return HoursCheck(stack_of(deployment), Hours("orders", PARTITION.stamp, PARTITION.stamp), Effort(), print)


def checked(deployment: Deployment, rows: list[ManifestRow]) -> HourReport:
    report = HourReport(hour=PARTITION.stamp)
    check_table(stack_of(deployment), PARTITION, rows, report)
    return report


def has_changed(deployment: Deployment, rows: list[ManifestRow]) -> bool:
    (reason,) = checked(deployment, rows).unproven
    return "has changed meanwhile" in reason


def change(deployment: Deployment, *, add: tuple[DataFile, ...] = (), remove: int = 0) -> None:
    """The table gets files, or loses the first files of the hour."""
    catalog = TableCatalog(deployment.services, "orders")
    before = table(deployment)
    keys = [key for key in deployment.keys("lake", "orders/date=2026-11-20/hour=09/") if "-g2-" in key]
    gone = [DataFile(f"s3://lake/{key}", 1, 1, (20777, 9)) for key in keys[:remove]]
    swapped(deployment, commit_batch(before, catalog, Batch(9, add, gone), 0, 0))


def test_an_hour_that_the_table_shows(deployment: Deployment, rows: list[ManifestRow]) -> None:
    assert checked(deployment, rows).is_empty
    # And files that it keeps for earlier snapshots are not a difference
    report, (old,) = HourReport(), [key for key in deployment.keys("lake", "orders/") if f"{rows[0].id}-g1" in key]
    check = hours_check(deployment)
    check._check_object(report, f"s3://lake/{old}", rows[0], ())
    assert report.is_empty
    check._check_object(report, f"s3://lake/{old}", replace(rows[0], tabled=None), ())
    assert "was replaced by generation 2" in report.unproven[0]


@pytest.mark.parametrize(
    ("generation", "count", "removed", "problem"),
    [
        (2, 0, 1, "is published, and the Iceberg table does not show it"),
        (1, 1, 0, "is shown by the Iceberg table, and is not published"),
        (2, 77, 1, "has another size or number of rows"),
    ],
)
def test_a_file_that_the_table_lacks_has_too_many_or_has_with_other_rows(
    deployment: Deployment, rows: list[ManifestRow], generation: int, count: int, removed: int, problem: str
) -> None:
    path = f"s3://lake/orders/date=2026-11-20/hour=09/{rows[0].id}-g{generation}-00000.parquet"
    change(deployment, remove=removed, add=(DataFile(path, 1, count, (20777, 9)),) * bool(count))
    (difference,) = checked(deployment, rows).differences
    assert difference.uri == path
    assert difference.problem.startswith(problem)


@pytest.mark.parametrize("damage", [None, b"", b"Obj\x01cut", b'{"format-version": 2}'])
@pytest.mark.parametrize("suffix", [".json", ".avro", "entry"])
def test_a_table_that_cannot_be_read_is_a_difference(
    deployment: Deployment, rows: list[ManifestRow], suffix: str, damage: bytes | None
) -> None:
    for key in deployment.keys("lake", ""):
        if key.endswith(suffix) and damage is None:
            deployment.raw_s3.delete_object(Bucket="lake", Key=key)
        elif key.endswith(suffix):
            deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=damage)
    if suffix == "entry":
        deployment.glue.tables["orders"] = {"Name": "orders", "TableType": "VIRTUAL_VIEW", "VersionId": "0"}
    (difference,) = checked(deployment, rows).differences
    assert difference.uri == "the Iceberg table orders"
    assert "run 'hybrid-router tables rebuild orders'" in difference.problem
    # And it is read once for all manifests
    with patch.object(IcebergTable, "_read_table", autospec=True, side_effect=IcebergTable._read_table) as read:
        table = reader(deployment)
        assert [table.hidden([("a", 1)]) for _ in range(2)] == [[], []]
    assert read.call_count == 1


def test_what_the_table_does_not_show_yet_is_not_proven(
    deployment: Deployment, rows: list[ManifestRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = publish(deployment, listed(deployment, "late"))
    table = reader(deployment)
    assert len(table.files(PARTITION)) == 2
    report = checked(deployment, [*rows, deployment.row(late.id)])
    assert (report.differences, len(report.unproven)) == ([], 1)
    assert f"does not show manifest {late.id} yet" in report.unproven[0]
    # And a batch committed between the reads of rows and table is not a difference
    commit(deployment)
    assert len(table.files(PARTITION)) == 3
    publish(deployment, forced(deployment, rows[0]))
    commit(deployment)
    assert has_changed(deployment, rows)
    # Nor is a batch that added a manifest which had published nothing by then
    rows = [deployment.row(row.id) for row in rows]
    assert has_changed(deployment, rows)
    # Nor is a batch whose marks are not written yet
    rows.append(deployment.row(late.id))
    monkeypatch.setattr(committer, "_mark", Mock(side_effect=Crash))
    publish(deployment, forced(deployment, rows[0]))
    with pytest.raises(Crash):
        commit(deployment)
    assert has_changed(deployment, rows)
    monkeypatch.undo()
    commit(deployment)
    # Nor is a table whose rebuild has begun between the reads
    rows = [deployment.row(row.id) for row in rows]
    rebuild_table(deployment.services, "orders")
    assert has_changed(deployment, rows)


def test_a_manifest_whose_table_is_rebuilt_while_it_is_compared_is_not_proven(
    deployment: Deployment, rows: list[ManifestRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*given: Any, **options: Any) -> Any:
        rebuild_table(deployment.services, "orders")
        return check_manifest(*given, **options)

    monkeypatch.setattr(module, "check_manifest", check)
    assert hours_check(deployment)._compare(rows[0]) == CHANGED


def rewrite(deployment: Deployment, operation: str, too_many: int = 0) -> None:
    """Another writer rewrites the files of the hour into one file."""
    shown = reader(deployment).files(PARTITION)
    files = [DataFile(uri, file.size, file.rows, (20777, 9)) for uri, file in shown.items()]
    number = sum(file.rows for file in files) + too_many
    new = DataFile("s3://lake/_tables/orders/data/x.parquet", 1, number, (20777, 9))
    swapped(deployment, by_another_writer(deployment, operation, Batch(0, [new], files)))


@pytest.mark.parametrize(
    ("operation", "too_many", "problems"),
    [
        ("replace", 0, []),
        ("replace", 1, ["shows 3 rows of 2026-11-20T09, and 2 are published: see 'hybrid-router tables status'"]),
        # UPDATE
        (
            "overwrite",
            0,
            ["shows rows of 2026-11-20T09 that another writer may have changed: see 'hybrid-router tables status'"],
        ),
    ],
)
def test_files_of_another_writer_count_as_a_compaction_if_the_row_count_is_equal(
    deployment: Deployment, rows: list[ManifestRow], operation: str, too_many: int, problems: list[str]
) -> None:
    rewrite(deployment, operation, too_many)
    assert [item.problem for item in checked(deployment, rows).differences] == problems
    # And an hour may have more manifests than one request reads
    gone = [replace(rows[0], id=str(number)) for number in range(MAX_BATCH_KEYS)]
    assert "has changed meanwhile" in checked(deployment, [*rows, *gone]).unproven[0]


def test_a_rollback_to_a_compaction_of_an_earlier_generation(deployment: Deployment, rows: list[ManifestRow]) -> None:
    # Given a compacted hour that was published again with as many rows
    rewrite(deployment, "replace")
    main = table(deployment)["refs"]["main"]
    publish(deployment, forced(deployment, rows[0]))
    commit(deployment)
    rows = [deployment.row(row.id) for row in rows]
    # When another writer rolls it back
    metadata = table(deployment)
    refs = {**metadata["refs"], "main": main}
    swapped(deployment, {**metadata, "refs": refs, "current-snapshot-id": main["snapshot-id"]})
    # Then
    (difference,) = checked(deployment, rows).differences
    assert "another writer may have changed" in difference.problem


def test_columns_that_readers_do_not_see(deployment: Deployment, rows: list[ManifestRow]) -> None:
    # Given: RENAME COLUMN renamed TO other, ADD COLUMN renamed DOUBLE, for which Iceberg's Java library moves the name
    # And a column that another writer has dropped, and two columns with one field id
    first, second = WITH_ONE_FIELD_ID
    metadata = with_columns(table(deployment), ["renamed", "dropped", first])
    schema = metadata["schemas"][-1]
    fields = [field | {"name": "other"} if field["name"] == "renamed" else field for field in schema["fields"]]
    number = metadata["last-column-id"] + 1
    fields.append({"id": number, "name": "renamed", "required": False, "type": "double"})
    metadata["schemas"][-1] = schema | {"fields": [field for field in fields if field["name"] != "dropped"]}
    mapping = json.loads(metadata["properties"][NAME_MAPPING].replace('["renamed"]', '["other"]'))
    metadata["properties"][NAME_MAPPING] = json.dumps([*mapping, {"field-id": number, "names": ["renamed"]}])
    swapped(deployment, metadata | {"last-column-id": number})
    # Then
    columns = [(name, number) for name in ("renamed", "dropped", first, second) for number in (field_id(name), None)]
    hidden = [("dropped", field_id("dropped")), ("dropped", None), (second, field_id(second)), (second, None)]
    assert reader(deployment).hidden(columns) == hidden
