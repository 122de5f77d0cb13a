"""The sweep deletes what no retained snapshot shows, and an hour is complete when its table shows it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from lake.documents import get_document
from lake.errors import TableStoppedError
from lake.layout import complete_marker_key
from lake.ledger import HourState, TableRow
from lake.ledger.tables import EXPIRY_ENTRY, Tables
from lake.time import iso_utc
from router.catalog.handler import catalog
from router.sweep import leftovers
from router.sweep.hours import announce_hours
from router.sweep.leftovers import delete_replaced, delete_table_files
from router.sweep.repair import Repair
from router.tables.batch import TableCatalog
from router.tables.handler import rebuild_table
from tests.load.request_counts import counted_requests
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.sweep.sweeping import listed, repair
from tests.unit.router.tables.tabling import (
    TABLES,
    by_another_writer,
    commit,
    forced,
    name_of,
    publish,
    shown,
    shown_in_the_end,
    swapped,
    table,
    tabled,
)


def swept(deployment: Deployment, work: Callable[[Repair], object] = delete_replaced) -> int:
    found = repair(deployment)
    work(found)
    assert found.errors == []
    return found.counts["deleted"]


@pytest.mark.parametrize("has_table", [True, False])
def test_rejected_lines_are_in_the_quarantine_once_while_the_table_keeps_its_files(
    deployment: Deployment, has_table: bool
) -> None:
    row = tabled(deployment, rejects=True)
    # Given a generation that the table still shows, with a table in the current settings or only in the earlier ones
    deployment.configure(datasets=TABLES if has_table else [{"name": "{folder}"}])
    publish(deployment, forced(deployment, row), rejects=True, has_table=has_table)
    commit(deployment)
    deployment.wait(timedelta(minutes=61))
    # When
    assert swept(deployment) == 1
    # Then
    assert len(deployment.keys("lake", "orders/")) == 2
    assert [key.rsplit("-", 2)[1] for key in deployment.keys("quarantine", "orders/")] == ["g2"]
    # And no batch is requested, and the next sweeps check nothing there
    assert list(deployment.ledger.tables.outbox("orders")) == []
    with counted_requests() as requests:
        assert swept(deployment) == 0
    assert requests["ListObjectsV2"] == 0
    # When the table is deleted
    deployment.configure(datasets=[{"name": "{folder}"}])
    del deployment.glue.tables["orders"]
    assert swept(deployment) == 1
    # Then its files are deleted as well
    assert [key.rsplit("-", 2)[1] for key in deployment.keys("lake", "orders/")] == ["g2"]
    assert list(deployment.ledger.deletions.due(deployment.now)) == []


@pytest.mark.parametrize("has_table", [False, True])
def test_deletions_that_wait_for_their_table_ask_for_it_once(deployment: Deployment, has_table: bool) -> None:
    # Given replaced generations that the table shows, whether the settings still ask for a table or not
    rows = [publish(deployment, listed(deployment, name)) for name in "abc"]
    commit(deployment)
    deployment.configure(datasets=TABLES if has_table else [{"name": "{folder}"}])
    for row in rows:
        publish(deployment, forced(deployment, row), has_table=has_table)
    deployment.wait(timedelta(days=9))
    listed_datasets: list[str] = []
    deployment.patch.setattr(leftovers, "PARALLEL_REQUESTS", 1)

    def ask(catalog: TableCatalog) -> bool:
        listed_datasets.append(catalog.dataset)
        return True

    deployment.patch.setattr(TableCatalog, "exists", ask)
    deployment.patch.setattr(Tables, "list_expiry", lambda _, dataset, __: listed_datasets.append(dataset))
    # When
    assert swept(deployment) == 0
    # Then
    assert listed_datasets == ["orders"]


@pytest.mark.parametrize("change", ["append", "delete", "gone"])
def test_a_change_of_a_table_that_gets_no_batch_is_found(deployment: Deployment, change: str) -> None:
    tabled(deployment)
    cleaned(deployment)
    assert commit(deployment) is None
    # When another writer changes its rows, and nothing is published on the following day
    if change == "gone":
        del deployment.glue.tables["orders"]
    else:
        swapped(deployment, by_another_writer(deployment, change))
    deployment.wait(timedelta(days=1))
    cleaned(deployment)
    # Then the next round stops the table, and its entry stays for the alarm
    with pytest.raises(TableStoppedError):
        commit(deployment)
    assert [entry.name for entry in deployment.ledger.tables.outbox("orders")] == [EXPIRY_ENTRY]


def test_tables_that_were_cleaned_starve_no_other(deployment: Deployment) -> None:
    # Given sweeps that have time for two of three tables, the first of them after a day
    cleaned: list[str] = []
    deployment.ledger.datasets.admit({"visits": ""}, 0)
    for name in ("clicks", "orders", "visits"):
        deployment.ledger.tables.create(name, f"uuid of {name}")

    def clean(repair: Repair, row: TableRow) -> None:
        cleaned.append(row.dataset)
        deployment.ledger.tables.note(row, cleaned_at=iso_utc(deployment.now))
        deployment.wait(timedelta(minutes=1))

    deployment.patch.setattr(leftovers, "_clean", clean)
    # When
    for _ in range(2):
        delete_table_files(Repair(deployment.services, deployment.now + timedelta(minutes=2)))
        deployment.wait(timedelta(days=1))
    # Then
    assert cleaned[:3] == ["clicks", "orders", "visits"]


def hours(deployment: Deployment, events: FakeEventBridge | None = None) -> HourState:
    deployment.services = replace(deployment.services, events=events or FakeEventBridge())
    swept(deployment, announce_hours)
    return deployment.ledger.partitions.get(PARTITION).decided


def test_an_hour_is_complete_when_its_table_shows_it(deployment: Deployment) -> None:
    row = publish(deployment, listed(deployment, "a"))
    deployment.ledger.tables.forget("orders", f"{row.id}#g1")
    deployment.wait(timedelta(hours=3))
    # Given an entry that an older version did not write: the sweep lists it
    assert hours(deployment) == HourState.OPEN
    assert commit(deployment) == 1
    # And a rebuild that has begun shows nothing that the previous table showed
    rebuild_table(deployment.services, "orders")
    assert hours(deployment) == HourState.OPEN
    assert commit(deployment) == 2
    assert hours(deployment) == HourState.COMPLETE
    assert deployment.ledger.partitions.get(PARTITION).counts.batch == 2


@pytest.mark.parametrize("deleted", [False, True])
def test_a_table_gets_what_was_published_while_the_settings_asked_for_none(
    deployment: Deployment, deleted: bool
) -> None:
    first = tabled(deployment)
    # Given an hour that is complete under settings without a table
    deployment.configure(datasets=[{"name": "{folder}"}])
    if deleted:
        del deployment.glue.tables["orders"]
    second = publish(deployment, listed(deployment, "b"), has_table=False)
    deployment.wait(timedelta(hours=3))
    assert hours(deployment) == HourState.COMPLETE
    # When the settings ask for a table again / Then only a rebuild fills a table that was deleted
    deployment.configure(datasets=TABLES)
    assert commit(deployment) == (None if deleted else 2)
    if not deleted:
        assert shown(deployment) == sorted(map(name_of, (first, second)))


def test_an_hour_that_was_complete_for_its_table_is_reopened_for_readers_of_the_files(deployment: Deployment) -> None:
    # Given a complete hour whose table keeps a replaced file
    publish(deployment, forced(deployment, tabled(deployment)))
    commit(deployment)
    deployment.wait(timedelta(hours=3))
    swept(deployment)
    assert hours(deployment) == HourState.COMPLETE
    # When the settings no longer ask for a table
    deployment.configure(datasets=[{"name": "{folder}"}])
    # Then it is reopened once, however many sweeps find its files before one announces that
    swept(deployment)
    touched = deployment.ledger.partitions.get(PARTITION).touched
    swept(deployment)
    assert deployment.ledger.partitions.get(PARTITION).touched == touched
    # And the sweep warns readers of the files, which have its rows twice, until the table is deleted
    assert hours(deployment) == HourState.REOPENED
    del deployment.glue.tables["orders"]
    assert swept(deployment) == 1
    deployment.wait(timedelta(hours=1))
    assert hours(deployment) == HourState.COMPLETE


def test_one_check_finds_everything_that_a_job_with_earlier_settings_has_published(deployment: Deployment) -> None:
    # Given an hour of a dataset with a table, published by a streaming job that started before the dataset had one
    deployment.ledger.tables.list_expiry("orders", deployment.now)
    commit(deployment)
    rows = [publish(deployment, listed(deployment, name), has_table=False) for name in "abc"]
    deployment.wait(timedelta(hours=3))
    # When
    assert hours(deployment) == HourState.OPEN
    # Then the next checks of an hour list nothing if only its table is behind or stopped
    with counted_requests() as requests:
        assert hours(deployment) == HourState.OPEN
    assert requests["UpdateItem"] == 1
    assert shown_in_the_end(deployment) == sorted(map(name_of, rows))
    assert hours(deployment) == HourState.COMPLETE


def test_a_check_of_an_hour_keeps_the_age_of_what_its_table_lacks(deployment: Deployment) -> None:
    # Given an hour whose table shows none of it
    publish(deployment, listed(deployment, "a"))
    tables = deployment.ledger.tables
    tables.list_expiry("orders", deployment.now)
    entries = list(tables.outbox("orders"))
    deployment.wait(timedelta(hours=3))
    assert hours(deployment) == HourState.OPEN
    tables.list_expiry("orders", deployment.now)
    # Then the alarm TablesBehind sees its full age, and the age of an expiry
    assert list(tables.outbox("orders")) == entries


def test_marker_and_event_of_an_hour_name_the_snapshot_that_shows_it(deployment: Deployment) -> None:
    # Given a table whose last batch added nothing to the hour
    row = tabled(deployment)
    publish(deployment, forced(deployment, row))
    deployment.wait(timedelta(hours=3))
    assert hours(deployment) == HourState.OPEN
    commit(deployment)
    snapshot = table(deployment)["current-snapshot-id"]
    deployment.ledger.tables.list_expiry("orders", deployment.now)
    commit(deployment)
    # When
    events = FakeEventBridge()
    assert hours(deployment, events) == HourState.COMPLETE
    # Then
    marker = json.loads(get_document(deployment.s3, "lake", complete_marker_key(PARTITION)))
    assert marker["table"] == {
        "name": f"{deployment.services.resources.tables_database}.orders",
        "snapshot": str(snapshot),
        "batch": 2,
    }
    assert [json.loads(event["Detail"]) for event in events.sent] == [marker]
    (shows,) = [item for item in table(deployment)["snapshots"] if item["snapshot-id"] == snapshot]
    assert shown(deployment, shows) == [name_of(row, 2)]


def test_a_dataset_with_an_iceberg_table_gets_no_hive_table(deployment: Deployment) -> None:
    deployment.configure(datasets=[{"name": "orders", "prefix": "orders/", "table": "iceberg"}, {"name": "{folder}"}])
    catalog(deployment.services)
    assert list(deployment.glue.tables) == ["clicks"]


def cleaned(deployment: Deployment) -> int:
    return swept(deployment, delete_table_files)


def test_the_folder_of_a_table_is_listed_once_a_day(deployment: Deployment) -> None:
    tabled(deployment)
    assert cleaned(deployment) == 0
    # Given a file of a batch that lost its swap, which may be deleted after three days
    catalog = TableCatalog(deployment.services, "orders")
    catalog.write(f"{catalog.location}/metadata/lost.avro", b"")
    deployment.wait(timedelta(days=3, hours=-1))
    assert cleaned(deployment) == 0
    deployment.wait(timedelta(hours=2))
    assert cleaned(deployment) == 0
    deployment.wait(timedelta(days=1))
    # And a dry run deletes nothing
    dry = replace(repair(deployment), dry_run=True)
    delete_table_files(dry)
    assert dry.items == [f"deleted: {catalog.location}/metadata/lost.avro"]
    assert cleaned(deployment) == 1


def test_the_manifest_lists_of_few_snapshots_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class ManifestList:
        def __iter__(self) -> Iterator[dict[str, str]]:
            yield {"manifest_path": "manifest"}

    in_memory: WeakSet[ManifestList] = WeakSet()
    numbers = []

    def read(*_: object) -> ManifestList:
        found = ManifestList()
        in_memory.add(found)
        numbers.append(len(in_memory))
        return found

    monkeypatch.setattr(leftovers, "manifests_of", read)
    metadata = {"metadata-log": [], "snapshots": [{"manifest-list": "list"}] * 2000}
    catalog: Any = None
    entry: Any = SimpleNamespace(location="document", metadata=metadata)
    assert set(leftovers._needed(catalog, entry, None)) == {"document", "list", "manifest"}
    assert len(numbers) == 2000
    assert max(numbers) <= 20
