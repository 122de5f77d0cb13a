"""A table is correct after every fault of its committer; without any one rule of the protocol it is not."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from lake.documents import encode
from lake.errors import HybridRouterError
from lake.ledger import ManifestRow, Published, State, TableRow
from lake.ledger.manifest_row import NO_OBJECTS, PublishedTotals, manifest_row_key
from lake.ledger.transitions import Manifests
from router.iceberg import metadata as iceberg
from router.services import Services
from router.tables import committer
from router.tables.batch import TableCatalog
from tests.model.fake_spark import inline_pools
from tests.model.mutations import Mutation, all_of, changed, replaced
from tests.model.table_histories import SCENARIOS, BrokenPromiseError, histories


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with inline_pools():
        yield


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_table_is_right_after_each_fault(scenario: str) -> None:
    played = list(histories(scenario))
    assert len(played) > 12


COMMITTER, LEFTOVERS, TABLES = "router.tables.committer", "router.sweep.leftovers", "lake.ledger.tables.Tables"
IS_APPLIED = committer.is_applied
MARK = '_mark(services, batch, int(metadata["properties"][BATCH_SNAPSHOT]))\n'
CLOSE = "tables.close(row, batch.number, oldest_batch(metadata))\n"


def no_look_after_a_refused_swap() -> AbstractContextManager[Any]:
    seen = set()

    def first_time_only(services: Services, row: TableRow, metadata: Any, number: int) -> bool:
        again = (id(services), number) in seen
        seen.add((id(services), number))
        return False if again else IS_APPLIED(services, row, metadata, number)

    return patch(f"{COMMITTER}.is_applied", first_time_only)


def generations_that_are_not_done_come_in() -> AbstractContextManager[Any]:
    def published(row: ManifestRow) -> ManifestRow:
        if row.state != State.PUBLISHING or row.document is None:
            return row
        totals = PublishedTotals(0, {}, 0, NO_OBJECTS, NO_OBJECTS, 0)
        return replace(row, published=Published(row.generation, row.document, totals))

    get_many = Manifests.get_many
    return patch.object(
        Manifests,
        "get_many",
        lambda self, *given, **options: [row and published(row) for row in get_many(self, *given, **options)],
    )


def number_is_written_in_a_second_swap() -> AbstractContextManager[Any]:
    swap = TableCatalog.swap

    def swap_twice(self: TableCatalog, entry: Any, metadata: Any) -> bool:
        before = {iceberg.BATCH: entry.metadata["properties"][iceberg.BATCH]}
        if not swap(self, entry, {**metadata, "properties": {**metadata["properties"], **before}}):
            return False
        current = self.load()
        assert current is not None
        return swap(self, current, {**current.metadata, "properties": metadata["properties"]})

    return patch.object(TableCatalog, "swap", swap_twice)


RULES: dict[str, dict[str, Mutation]] = {
    "batches": {
        "property is not compared": replaced(f"{COMMITTER}.is_applied", lambda *_: False),
        "no look after a refused swap": no_look_after_a_refused_swap,
        "marks after the batch is closed": changed(
            f"{COMMITTER}._bring_in", f"    {MARK}    {CLOSE}", f"    {CLOSE}    {MARK}"
        ),
        "marks move backward": replaced(
            "lake.ledger.transitions.Manifests.mark_tabled",
            lambda self, row, tabled: self._table.update(manifest_row_key(row.id), assign={"tabled": encode(tabled)}),
        ),
        "batch is planned before the row is read": changed(
            f"{COMMITTER}._bring_in",
            "reference = write_batch(services, batch)",
            "write_batch(services, batch)\n        row = replace(tables.get(dataset), pending=None)\n"
            "        batch = replace(batch, number=row.applied + 1)\n        reference = write_batch(services, batch)",
        ),
        "intent is unconditional": changed(
            f"{TABLES}.intend",
            'self._change(row, {"pending": asdict(batch)}, ())',
            'self._table.update(_key(row.dataset), assign={"pending": asdict(batch)})',
        ),
        "generations that are not DONE come in": generations_that_are_not_done_come_in,
        "number is written in a second swap": number_is_written_in_a_second_swap,
        "objects that snapshots show are deleted": all_of(
            replaced(f"{LEFTOVERS}._may_be_expired", lambda *_: True),
            replaced(f"{LEFTOVERS}._may_be_shown", lambda *_, **__: False),
        ),
        "what the last batch has replaced is expired": all_of(
            replaced(f"{LEFTOVERS}._may_be_expired", lambda *_: True),
            changed(f"{LEFTOVERS}._may_be_shown", "row.tabled.batch > table.oldest", "False"),
        ),
        "publishes are not listed": replaced(f"{TABLES}.list_generation", lambda *_: None),
        "young files of the table are deleted": replaced(f"{LEFTOVERS}.MIN_AGE", timedelta(seconds=-1)),
        "only the current snapshot keeps metadata": changed(
            f"{LEFTOVERS}._needed", 'snapshots = metadata["snapshots"]', 'snapshots = metadata["snapshots"][-1:]'
        ),
    },
    "compacted": {
        "snapshots do not keep files of a compaction": changed(
            f"{LEFTOVERS}._needed", "if data is not None:", "if False:"
        ),
        "compacted hours are not built anew": replaced(
            f"{COMMITTER}._rebuilt_hours", lambda _, planned: replace(committer._change(planned), remove=())
        ),
    },
    "rebuilt": {
        "a new table is listed before its hours": changed(
            f"{COMMITTER}._list_hours", "def list_hour", "tables.note(row, unlisted=None)\n\n    def list_hour"
        )
    },
    "rolled back": {"ancestry is not compared": replaced(f"{COMMITTER}.foreign_change", lambda _: None)},
}
"""Each removed rule and its mutation, by the scenario in which it is missed."""


@pytest.mark.parametrize(("scenario", "rule"), [(name, rule) for name, rules in RULES.items() for rule in rules])
def test_each_removed_rule_is_detected(scenario: str, rule: str) -> None:
    with RULES[scenario][rule](), pytest.raises((BrokenPromiseError, HybridRouterError)):
        list(histories(scenario))
