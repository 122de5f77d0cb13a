"""The function ``tables`` shares its time among the tables, and has Glue compact them as the setting says."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.ledger import Ledger
from lake.ledger import tables as ledger_of_tables
from lake.ledger.tables import EXPIRY_ENTRY
from lake.manifest import Partition
from router.services import PARALLEL_REQUESTS
from router.tables import handler
from router.tables.batch import PARALLEL_TABLES
from router.tables.handler import TIME_PER_CALL, commit_tables
from router.telemetry import Metric
from tests.unit.router.conftest import Deployment, recorded
from tests.unit.router.sweep.sweeping import listed
from tests.unit.router.tables.tabling import TABLES, commit, publish, row_of, tabled

NAMES = ("clicks", "orders", "visits")


@pytest.fixture
def begun(deployment: Deployment) -> Counter[str]:
    """Batches by table, with pending work for each of three tables. Each takes a minute, one after another."""
    deployment.patch.setattr(handler, "PARALLEL_TABLES", 1)
    begun: Counter[str] = Counter()
    for name in NAMES:
        deployment.ledger.tables.list_expiry(name, deployment.now)

    def commit_round(_services: object, dataset: str) -> int:
        begun[dataset] += 1
        deployment.wait(timedelta(minutes=1))
        return begun[dataset]

    deployment.patch.setattr(handler, "commit_round", commit_round)
    return begun


def test_tables_that_wait_are_found_by_few_reads(deployment: Deployment) -> None:
    # Given three tables, the second of which has more entries than a page
    deployment.patch.setattr(ledger_of_tables, "PAGE_ITEMS", 4)
    for name, entries in zip(NAMES, (2, 9, 1), strict=True):
        for number in range(entries):
            deployment.ledger.tables.list_hour(Partition(name, "2026-11-20", number), deployment.now)
    read: list[tuple[bool, int]] = []
    query = deployment.dynamodb.query

    def count_items(**request: Any) -> Any:
        page = query(**request)
        read.append(("IndexName" in request, len(page["Items"])))
        return page

    deployment.patch.setattr(deployment.dynamodb, "query", count_items)
    # When
    ledger = Ledger.over(deployment.dynamodb, "ledger")
    services = replace(deployment.services, ledger=ledger)
    deployment.wait(timedelta(minutes=20))
    deployment.patch.setattr(handler, "commit_round", lambda *_: None)
    (behind,) = recorded(lambda: commit_tables(services, lambda _: None), Metric.TABLES_BEHIND_MINUTES)
    # Then each check takes two reads; and the age of the oldest entry belongs to one table
    assert behind == 20
    assert [entry.dataset for entry in ledger.tables.waiting()] == list(NAMES)
    assert read == [(True, 4), (True, 1)] * 2 + [(False, 2)] + [(True, 4), (True, 1)]


def test_tables_do_not_wait_for_each_other(deployment: Deployment, begun: Counter[str]) -> None:
    # Given batches that end as soon as every table has had one
    all_begun = Barrier(len(NAMES), timeout=5)

    def commit_round(_services: object, dataset: str) -> int | None:
        begun[dataset] += 1
        return all_begun.wait() if begun[dataset] == 1 else None

    deployment.patch.setattr(handler, "PARALLEL_TABLES", len(NAMES))
    deployment.patch.setattr(handler, "commit_round", commit_round)
    # When, Then
    assert commit_tables(deployment.services, lambda _: None) == {"batches": len(NAMES)}


def test_tables_share_the_threads_of_an_invocation(deployment: Deployment) -> None:
    # Given a table that gets an hour again, and lists its hours first
    publish(deployment, listed(deployment, "a"))
    pool = Mock(side_effect=ThreadPoolExecutor)
    deployment.patch.setattr("router.services.ThreadPoolExecutor", pool)
    # When
    assert commit(deployment) == 1
    # Then each step leaves threads for the other tables: each thread has a commit document in memory
    assert pool.call_count > 1
    assert all(call.args[0] * PARALLEL_TABLES <= PARALLEL_REQUESTS for call in pool.call_args_list)


def test_no_table_has_a_second_batch_before_every_other_has_its_first(
    deployment: Deployment, begun: Counter[str]
) -> None:
    commit_tables(deployment.services, lambda _: None)
    assert sorted(begun.values()) == [1, 1, 2]


def test_a_dataset_that_was_moved_back_delays_nothing_and_raises_no_alarm(
    deployment: Deployment, begun: Counter[str]
) -> None:
    # Given a table that is no longer updated, with an earlier entry
    deployment.wait(timedelta(days=1))
    for name in NAMES[:2]:
        deployment.ledger.tables.forget(name, EXPIRY_ENTRY)
    moved = {"name": NAMES[2], "prefix": f"{NAMES[2]}/"}
    deployment.configure(datasets=[moved, {"name": "{folder}", "table": "iceberg"}])
    # When, Then
    assert recorded(lambda: commit_tables(deployment.services, lambda _: None), Metric.TABLES_BEHIND_MINUTES) == [0]
    assert not begun


def test_a_table_that_takes_all_the_time_starves_no_other(deployment: Deployment, begun: Counter[str]) -> None:
    def commit_round(_services: object, dataset: str) -> None:
        begun[dataset] += 1
        if dataset == NAMES[0]:
            deployment.wait(TIME_PER_CALL)
            raise RuntimeError("the function has run out of memory")

    deployment.patch.setattr(handler, "commit_round", commit_round)
    for _ in range(60):
        with pytest.raises(RuntimeError):
            commit_tables(deployment.services, lambda _: None)
    assert all(begun[name] for name in NAMES)


def test_a_call_without_time_left_waits_for_no_interval(deployment: Deployment, begun: Counter[str]) -> None:
    # Given tables whose batches take all the time, and an interval of ten seconds
    deployment.configure(datasets=TABLES, tables={"commit_seconds": 10})
    # Then the function ends before its timeout, and records how far the tables are behind
    waited: list[float] = []
    commit_tables(deployment.services, waited.append)
    assert begun
    assert not waited


ROLE = "arn:aws:iam::111122223333:role/optimizer"
OFF = {"roleArn": ROLE, "enabled": False}
ON = {
    "roleArn": ROLE,
    "enabled": True,
    "compactionConfiguration": {"icebergConfiguration": {"strategy": "binpack"}},
}


def configure(deployment: Deployment, role: str) -> None:
    """The stack has a role if the setting asks for compaction."""
    deployment.services = replace(deployment.services, optimizer_role=role)


def test_the_setting_switches_the_compaction_on_and_off_with_the_next_batch(deployment: Deployment) -> None:
    configure(deployment, "")
    tabled(deployment, "a")
    assert deployment.glue.optimizers == {}
    # Given retention that the account's catalog has switched on
    deployment.glue.optimizers["orders", "retention"] = {"enabled": True}
    # When
    configure(deployment, ROLE)
    tabled(deployment, "b")
    # Then the others are off, because they delete files
    optimizers = deployment.glue.optimizers
    assert optimizers == {
        ("orders", "compaction"): ON,
        ("orders", "retention"): OFF,
        ("orders", "orphan_file_deletion"): OFF,
    }
    # When the setting is removed and restored by deployments between two batches / Then the tables get the role
    configure(deployment, f"{ROLE}-2")
    tabled(deployment, "c")
    assert {item["roleArn"] for item in optimizers.values()} == {f"{ROLE}-2"}
    # When it is switched off / Then the others stay off
    configure(deployment, "")
    tabled(deployment, "d")
    assert set(optimizers) == {("orders", "retention"), ("orders", "orphan_file_deletion")}


def test_what_a_person_changed_stays_until_the_setting_changes(deployment: Deployment) -> None:
    configure(deployment, ROLE)
    tabled(deployment, "a")
    deployment.glue.optimizers.clear()
    tabled(deployment, "b")
    assert deployment.glue.optimizers == {}
    # And an optimizer that was already deleted is not an error
    configure(deployment, "")
    tabled(deployment, "c")
    assert not row_of(deployment).optimizer_role


def test_a_refused_change_is_tried_again_and_holds_back_no_batch(deployment: Deployment) -> None:
    configure(deployment, ROLE)
    changed = deployment.glue._error("ConcurrentModificationException", "CreateTableOptimizer")
    publish(deployment, listed(deployment, "a"))
    with deployment.patch.context() as patch:
        patch.setattr(deployment.glue, "create_table_optimizer", Mock(side_effect=changed))
        with pytest.raises(ClientError, match="ConcurrentModificationException"):
            commit(deployment)
    row = row_of(deployment)
    assert (row.applied, row.pending, list(deployment.ledger.tables.outbox("orders"))) == (1, None, [])
    tabled(deployment, "b")
    assert deployment.glue.optimizers["orders", "compaction"] == ON
