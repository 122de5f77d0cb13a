"""The sweep deletes what no retained snapshot shows, and an hour is complete when its table shows it."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from lake.commit import read_commit
from lake.documents import get_document
from lake.errors import TableStoppedError
from lake.layout import complete_marker_key
from lake.ledger import HourState
from lake.ledger.tables import EXPIRY_ENTRY
from lake.publish import complete_all
from router.catalog.handler import catalog
from router.iceberg.commit import Batch, commit_batch
from router.sweep.hours import announce_hours
from router.sweep.leftovers import delete_replaced, delete_table_files
from router.sweep.repair import Repair
from router.tables.batch import TableCatalog
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.sweep.sweeping import committed
from tests.unit.router.tables.tabling import (
    COMPACTED,
    TABLES,
    by_another_writer,
    commit,
    compacted,
    forced,
    listed,
    name_of,
    publish,
    shown,
    swapped,
    table,
)

KEPT = timedelta(hours=24)


@pytest.fixture(autouse=True)
def _tables(deployment: Deployment) -> None:
    deployment.configure(datasets=TABLES)
    deployment.ledger.datasets.register("orders")


def swept(deployment: Deployment) -> int:
    repair = Repair(deployment.services, deployment.now + timedelta(minutes=1))
    delete_replaced(repair)
    assert repair.errors == []
    return repair.counts["deleted"]


def test_replaced_objects_stay_until_no_retained_snapshot_shows_them(deployment: Deployment) -> None:
    row = publish(deployment, listed(deployment, "a"))
    commit(deployment)
    publish(deployment, forced(deployment, row))
    # Given that the grace period is over, and the table has not caught up, or has
    deployment.wait(timedelta(hours=2))
    assert swept(deployment) == 0
    commit(deployment)
    assert swept(deployment) == 0
    # When the snapshots of the replaced generation are old enough, and nothing else is published
    deployment.wait(KEPT)
    assert swept(deployment) == 0
    assert commit(deployment) == 3
    # Then a batch without files has expired them
    assert swept(deployment) == 1
    assert shown(deployment) == [name_of(row, 2)]
    assert [name_of(row, 2) in key for key in deployment.keys("lake", "orders/")] == [True]
    assert not list(deployment.ledger.deletions.due(deployment.now))


def test_a_table_whose_setting_is_rolled_back_stays_whole_until_it_is_deleted(deployment: Deployment) -> None:
    row = publish(deployment, listed(deployment, "a"))
    commit(deployment)
    before = deployment.keys("lake", "orders/")
    # Given settings that ask for no table any more
    deployment.configure(datasets=[{"name": "{folder}"}])
    publish(deployment, forced(deployment, row), has_table=False)
    deployment.wait(timedelta(days=9))
    # When
    assert swept(deployment) == 0
    # Then its readers find what it shows
    assert set(before) < set(deployment.keys("lake", "orders/"))
    # When it is gone from the catalog
    del deployment.glue.tables["orders"]
    assert swept(deployment) == 1
    assert not set(before) & set(deployment.keys("lake", "orders/"))


def test_a_generation_that_the_table_does_not_show_keeps_the_one_before(deployment: Deployment) -> None:
    row = publish(deployment, listed(deployment, "a"))
    commit(deployment)
    publish(deployment, forced(deployment, row))
    deployment.wait(KEPT + timedelta(hours=1))
    assert swept(deployment) == 0
    assert len(deployment.keys("lake", "orders/")) == 2


def test_objects_of_a_failed_publish_are_not_in_a_table(deployment: Deployment) -> None:
    publishing = committed(deployment, deployment.claimed(listed(deployment, "a")))
    assert publishing.document is not None
    document = read_commit(deployment.s3, "control", publishing.document)
    complete_all(deployment.s3, document.objects)
    assert deployment.ledger.manifests.fail(publishing, "an upload is gone", deployment.now)
    deployment.wait(KEPT + timedelta(hours=1))
    assert swept(deployment) == 2


@pytest.mark.parametrize("change", ["append", "delete", "gone"])
def test_a_change_of_a_table_that_gets_no_batch_is_found(deployment: Deployment, change: str) -> None:
    publish(deployment, listed(deployment, "a"))
    commit(deployment)
    delete_table_files(Repair(deployment.services, deployment.now + timedelta(minutes=1)))
    assert commit(deployment) is None
    # When another writer changes its rows, and nothing is published on the day after
    if change == "gone":
        del deployment.glue.tables["orders"]
    else:
        swapped(deployment, by_another_writer(deployment, change))
    deployment.wait(timedelta(days=1))
    delete_table_files(Repair(deployment.services, deployment.now + timedelta(minutes=1)))
    # Then the next round stops the table, and its entry stays for the alarm
    with pytest.raises(TableStoppedError):
        commit(deployment)
    assert [entry.name for entry in deployment.ledger.tables.outbox("orders")] == [EXPIRY_ENTRY]


def hours(deployment: Deployment, events: FakeEventBridge | None = None) -> HourState:
    services = replace(deployment.services, events=events or FakeEventBridge())
    repair = Repair(services, deployment.now + timedelta(minutes=1))
    announce_hours(repair)
    assert repair.errors == []
    return deployment.ledger.partitions.get(PARTITION).told


def test_an_hour_is_complete_when_its_table_shows_it(deployment: Deployment) -> None:
    row = publish(deployment, listed(deployment, "a"))
    deployment.ledger.tables.forget("orders", f"{row.id}#g1")
    deployment.wait(timedelta(hours=3))
    # Given an entry that an older version has not written: the sweep lists it
    assert hours(deployment) == HourState.OPEN
    assert commit(deployment) == 1
    assert hours(deployment) == HourState.COMPLETE


def test_marker_and_event_of_an_hour_name_the_snapshot_that_shows_it(deployment: Deployment) -> None:
    # Given a table whose last batch has brought nothing into the hour
    row = publish(deployment, listed(deployment, "a"))
    commit(deployment)
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
    deployment.ledger.datasets.register("clicks")
    deployment.configure(datasets=[{"name": "orders", "prefix": "orders/", "table": "iceberg"}, {"name": "{folder}"}])
    assert catalog(deployment.services)["created"] == ["clicks"]


def cleaned(deployment: Deployment) -> int:
    repair = Repair(deployment.services, deployment.now + timedelta(minutes=1))
    delete_table_files(repair)
    assert repair.errors == []
    return repair.counts["deleted"]


def test_metadata_that_no_retained_snapshot_needs_is_deleted_once_a_day(deployment: Deployment) -> None:
    # Given batches of some days, of which one has lost its swap
    rows = [publish(deployment, listed(deployment, "a"))]
    commit(deployment)
    entry = TableCatalog(deployment.services, "orders").load()
    assert entry is not None
    commit_batch(entry.metadata, TableCatalog(deployment.services, "orders"), Batch(9, []), 0, 0)
    for name in "bcde":
        deployment.wait(timedelta(days=20))
        rows.append(publish(deployment, listed(deployment, name)))
        commit(deployment)
    before = deployment.keys("lake", "_tables/")
    # When
    deleted = cleaned(deployment)
    # Then each retained snapshot can be read, and so can the documents of the log
    kept = deployment.keys("lake", "_tables/")
    assert deleted == len(before) - len(kept) > 3
    metadata = table(deployment)
    for snapshot in metadata["snapshots"]:
        assert shown(deployment, snapshot)
    assert shown(deployment) == sorted(name_of(row) for row in rows)
    for item in metadata["metadata-log"]:
        assert get_document(deployment.s3, "lake", item["metadata-file"].removeprefix("s3://lake/"))
    assert len(deployment.keys("lake", "orders/")) == 5
    # And it looks again a day later only
    catalog = TableCatalog(deployment.services, "orders")
    catalog.write(f"{catalog.location}/metadata/lost.avro", b"")
    deployment.wait(timedelta(days=3, hours=-1))
    assert cleaned(deployment) == 0
    deployment.wait(timedelta(hours=2))
    assert cleaned(deployment) == 0
    deployment.wait(timedelta(days=1))
    assert cleaned(deployment) == 1


def test_files_of_a_compaction_go_when_no_retained_snapshot_shows_them(deployment: Deployment) -> None:
    deployment.configure(datasets=TABLES, tables={"keep_hours": 720})
    rows = [publish(deployment, listed(deployment, name)) for name in "ab"]
    commit(deployment)
    compacted(deployment)
    lost = "_tables/orders/data/of-a-compaction-that-failed.parquet"
    deployment.raw_s3.put_object(Bucket="lake", Key=lost, Body=b"")
    deployment.wait(timedelta(days=20))
    # Given that the current snapshot shows them
    cleaned(deployment)
    assert deployment.keys("lake", "_tables/orders/data/") == [COMPACTED]
    # Given an hour that is built anew of its original files: an earlier snapshot still shows them
    publish(deployment, forced(deployment, rows[0]))
    commit(deployment)
    deployment.wait(timedelta(days=1))
    cleaned(deployment)
    assert deployment.keys("lake", "_tables/orders/data/") == [COMPACTED]
    # When this one has expired
    deployment.configure(datasets=TABLES)
    deployment.ledger.tables.list_expiry("orders", deployment.now)
    commit(deployment)
    deployment.wait(timedelta(days=1))
    cleaned(deployment)
    # Then they are gone, and the table shows the originals
    assert deployment.keys("lake", "_tables/orders/data/") == []
    assert shown(deployment) == sorted([name_of(rows[0], 2), name_of(rows[1])])


def test_metadata_that_is_young_stays(deployment: Deployment) -> None:
    publish(deployment, listed(deployment, "a"))
    commit(deployment)
    catalog = TableCatalog(deployment.services, "orders")
    catalog.write(f"{catalog.location}/metadata/being-written.avro", b"")
    deployment.wait(timedelta(days=2))
    assert cleaned(deployment) == 0
