"""A table is right after every fault of its committer; without any of the rules of the protocol it is not."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from lake.documents import encode
from lake.errors import HybridRouterError
from lake.ledger import BatchReference, ManifestRow, Published, State, TableRow
from lake.ledger.manifest_row import NO_OBJECTS, PublishedTotals, manifest_row_key
from lake.ledger.table import Key
from lake.ledger.tables import Tables
from lake.ledger.transitions import Manifests
from router.iceberg import metadata as iceberg
from router.services import Services
from router.sweep import leftovers
from router.tables import committer
from router.tables.batch import TableCatalog, write_batch
from tests.model.mutations import Mutation, all_of, changed, replaced
from tests.model.pools import inline_pools
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
IS_APPLIED, NEEDED = committer.is_applied, leftovers._needed


def no_look_after_a_refused_swap() -> AbstractContextManager[Any]:
    asked = set()

    def first_time_only(services: Services, row: TableRow, metadata: Any, number: int) -> bool:
        again = (id(services), number) in asked
        asked.add((id(services), number))
        return False if again else IS_APPLIED(services, row, metadata, number)

    return patch(f"{COMMITTER}.is_applied", first_time_only)


def marks_after_the_batch_is_closed() -> AbstractContextManager[Any]:
    mark, close = committer._mark, Tables.close
    waiting: dict[Tables, tuple[Any, ...]] = {}

    def mark_later(services: Services, *planned: Any) -> None:
        waiting[services.ledger.tables] = (services, *planned)

    def close_then_mark(self: Tables, *arguments: Any) -> None:
        close(self, *arguments)
        mark(*waiting[self])

    return all_of(replaced(f"{COMMITTER}._mark", mark_later), replaced(f"{TABLES}.close", close_then_mark))()


def intend_unconditionally(self: Tables, row: TableRow, reference: BatchReference) -> bool:
    self._table.update(Key(f"table#{row.dataset}", "table"), assign={"pending": _as_item(reference)})
    return True


def intend_for_the_current_row(self: Tables, row: TableRow, reference: BatchReference) -> bool:
    current = self.get(row.dataset)
    assert current is not None
    return current.pending is None and self._change(current, {"pending": _as_item(reference)}, ())


def write_and_number_again(services: Services, planned: Any) -> BatchReference:
    write_batch(services, planned)
    row = services.ledger.tables.get(planned.dataset)
    assert row is not None
    object.__setattr__(planned, "number", row.applied + 1)
    return write_batch(services, planned)


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


def applied_to_any_table(services: Services, row: TableRow, metadata: Any, number: int) -> bool:
    return IS_APPLIED(services, replace(row, uuid=metadata["table-uuid"]), metadata, number)


def needed_by_the_current_snapshot(catalog: TableCatalog, entry: Any, data: str | None) -> Any:
    *_, last = entry.metadata["snapshots"]
    return NEEDED(catalog, replace(entry, metadata={**entry.metadata, "snapshots": [last]}), data)


NO_COMPARISON_OF_ANCESTRY = replaced(f"{COMMITTER}.foreign_change", lambda _: None)
RULES: dict[str, tuple[str, Mutation]] = {
    "property is not compared": ("batches", replaced(f"{COMMITTER}.is_applied", lambda *_: False)),
    "no look after a refused swap": ("batches", no_look_after_a_refused_swap),
    "marks after the batch is closed": ("batches", marks_after_the_batch_is_closed),
    "marks move backward": (
        "batches",
        replaced(
            "lake.ledger.transitions.Manifests.mark_tabled",
            lambda self, row, tabled: self._table.update(manifest_row_key(row.id), assign={"tabled": encode(tabled)}),
        ),
    ),
    "batch is planned before the row is read": (
        "batches",
        all_of(
            replaced(f"{COMMITTER}.write_batch", write_and_number_again),
            replaced(f"{TABLES}.intend", intend_for_the_current_row),
        ),
    ),
    "intent is unconditional": ("batches", replaced(f"{TABLES}.intend", intend_unconditionally)),
    "generations that are not DONE come in": ("batches", generations_that_are_not_done_come_in),
    "number is written in a second swap": ("batches", number_is_written_in_a_second_swap),
    "objects that snapshots show are deleted": (
        "batches",
        all_of(
            replaced(f"{LEFTOVERS}._may_be_expired", lambda *_: True),
            replaced(f"{LEFTOVERS}._may_be_shown", lambda *_, **__: False),
        ),
    ),
    "what the last batch has replaced is expired": (
        "batches",
        all_of(
            replaced(f"{LEFTOVERS}._may_be_expired", lambda *_: True),
            replaced(f"{LEFTOVERS}.is_expired", lambda row, _: row.is_tabled),
        ),
    ),
    "publishes are not listed": ("batches", replaced(f"{TABLES}.list_generation", lambda *_: None)),
    "young files of the table are deleted": ("batches", replaced(f"{LEFTOVERS}.MIN_AGE", timedelta(seconds=-1))),
    "only the current snapshot keeps metadata": (
        "batches",
        replaced(f"{LEFTOVERS}._needed", needed_by_the_current_snapshot),
    ),
    "snapshots do not keep files of a compaction": (
        "compacted",
        replaced(f"{LEFTOVERS}._needed", lambda catalog, entry, _: NEEDED(catalog, entry, None)),
    ),
    "compacted hours are not built anew": (
        "compacted",
        replaced(f"{COMMITTER}._rebuilt_hours", lambda _, planned: replace(committer._change(planned), remove=())),
    ),
    "a new table is listed before its hours": (
        "rebuilt",
        changed(f"{COMMITTER}._list_hours", "def list_hour", "tables.note(row, unlisted=None)\n\n    def list_hour"),
    ),
    "ancestry is not compared": ("rolled back", NO_COMPARISON_OF_ANCESTRY),
    "UUID is not compared": ("another table", replaced(f"{COMMITTER}.is_applied", applied_to_any_table)),
}
"""Each removed rule: the scenario in which it is missed, and its mutation."""


@pytest.mark.parametrize("rule", RULES)
def test_each_removed_rule_is_detected(rule: str) -> None:
    scenario, mutation = RULES[rule]
    with mutation(), pytest.raises((BrokenPromiseError, HybridRouterError)):
        list(histories(scenario))


def test_changes_of_rows_are_refused() -> None:
    with NO_COMPARISON_OF_ANCESTRY(), pytest.raises(BrokenPromiseError):
        list(histories("rows of another writer"))


def _as_item(reference: BatchReference) -> dict[str, Any]:
    return {"number": reference.number, "key": reference.key, "sha256": reference.sha256}
