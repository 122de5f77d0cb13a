"""A table is right after every fault of its committer; without any of the rules of the protocol it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from lake.documents import encode
from lake.errors import HybridRouterError
from lake.ledger import Published, State
from lake.ledger.manifest_row import NO_OBJECTS, PublishedTotals, manifest_row_key
from lake.ledger.table import Key
from lake.ledger.tables import Tables
from lake.ledger.transitions import Manifests
from router.iceberg import metadata as iceberg
from router.sweep import leftovers as replaced
from router.tables import batch as planning
from router.tables import committer
from router.tables.batch import TableCatalog
from tests.model.inline_pool import MODULES_WITH_POOLS, InlinePool
from tests.model.table_histories import SCENARIOS, BrokenPromiseError, histories

if TYPE_CHECKING:
    from collections.abc import Callable

    from lake.ledger import BatchReference, ManifestRow, Tabled, TableRow
    from router.services import Services

    Mutation = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES_WITH_POOLS:
        monkeypatch.setattr(import_module(name), "ThreadPoolExecutor", InlinePool)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_table_is_right_after_each_fault(scenario: str) -> None:
    played = list(histories(scenario))
    assert len(played) > 12


def property_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committer, "is_applied", lambda *_: False)


def no_look_after_a_refused_swap(patch: pytest.MonkeyPatch) -> None:
    real, asked = committer.is_applied, set()

    def first_time_only(services: Services, row: TableRow, metadata: Any, number: int) -> bool:
        again = (id(services), number) in asked
        asked.add((id(services), number))
        return False if again else real(services, row, metadata, number)

    patch.setattr(committer, "is_applied", first_time_only)


def marks_after_the_batch_is_closed(patch: pytest.MonkeyPatch) -> None:
    mark, close = committer._mark, Tables.close
    waiting: dict[Tables, tuple[Any, ...]] = {}

    def mark_later(services: Services, *planned: Any) -> None:
        waiting[services.ledger.tables] = (services, *planned)

    def close_then_mark(self: Tables, *arguments: Any) -> None:
        close(self, *arguments)
        mark(*waiting[self])

    patch.setattr(committer, "_mark", mark_later)
    patch.setattr(Tables, "close", close_then_mark)


def marks_move_backward(patch: pytest.MonkeyPatch) -> None:
    def mark(self: Manifests, row: ManifestRow, tabled: Tabled) -> None:
        self._table.update(manifest_row_key(row.id), assign={"tabled": encode(tabled)})

    patch.setattr(Manifests, "mark_tabled", mark)


def batch_is_planned_before_the_row_is_read(patch: pytest.MonkeyPatch) -> None:
    write = planning.write_batch

    def intend(self: Tables, row: TableRow, reference: BatchReference) -> bool:
        current = self.get(row.dataset)
        assert current is not None
        return current.pending is None and self._change(current, {"pending": _as_item(reference)}, ())

    def write_and_number_again(services: Services, planned: Any) -> BatchReference:
        write(services, planned)
        row = services.ledger.tables.get(planned.dataset)
        assert row is not None
        object.__setattr__(planned, "number", row.applied + 1)
        return write(services, planned)

    patch.setattr(committer, "write_batch", write_and_number_again)
    patch.setattr(Tables, "intend", intend)


def intent_is_unconditional(patch: pytest.MonkeyPatch) -> None:
    def intend(self: Tables, row: TableRow, reference: BatchReference) -> bool:
        self._table.update(_table_key(row), assign={"pending": _as_item(reference)})
        return True

    patch.setattr(Tables, "intend", intend)


def generations_that_are_not_done_come_in(patch: pytest.MonkeyPatch) -> None:
    def published(row: ManifestRow) -> ManifestRow:
        if row.state != State.PUBLISHING or row.document is None:
            return row
        totals = PublishedTotals(0, {}, 0, NO_OBJECTS, NO_OBJECTS, 0)
        return replace(row, published=Published(row.generation, row.document, totals))

    get_many = Manifests.get_many
    patch.setattr(Manifests, "get_many", lambda self, names: [row and published(row) for row in get_many(self, names)])


def number_is_written_in_a_second_swap(patch: pytest.MonkeyPatch) -> None:
    swap = TableCatalog.swap

    def swap_twice(self: TableCatalog, entry: Any, metadata: Any) -> bool:
        before = {iceberg.BATCH: entry.metadata["properties"][iceberg.BATCH]}
        if not swap(self, entry, {**metadata, "properties": {**metadata["properties"], **before}}):
            return False
        current = self.load()
        assert current is not None
        return swap(self, current, {**current.metadata, "properties": metadata["properties"]})

    patch.setattr(TableCatalog, "swap", swap_twice)


def ancestry_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committer, "foreign_change", lambda _: None)


def uuid_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    real = committer.is_applied

    def with_its_uuid(services: Services, row: TableRow, metadata: Any, number: int) -> bool:
        return real(services, replace(row, uuid=metadata["table-uuid"]), metadata, number)

    patch.setattr(committer, "is_applied", with_its_uuid)


def compacted_hours_are_not_built_anew(patch: pytest.MonkeyPatch) -> None:
    def only_new(_: Services, planned: Any) -> Any:
        return replace(committer._change(planned), remove=())

    patch.setattr(committer, "_rebuilt_hours", only_new)


def objects_that_snapshots_show_are_deleted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replaced, "_may_be_expired", lambda *_: True)
    patch.setattr(replaced, "_is_shown", lambda *_, **__: False)


def replaced_by_the_last_batch_is_expired(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replaced, "_may_be_expired", lambda *_: True)
    patch.setattr(replaced, "is_expired", lambda row, _: row.is_tabled)


def young_files_of_the_table_are_deleted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replaced, "MIN_AGE", timedelta(seconds=-1))


def only_the_current_snapshot_keeps_metadata(patch: pytest.MonkeyPatch) -> None:
    needed = replaced._needed

    def of_the_current_one(catalog: TableCatalog, entry: Any, data: str | None) -> Any:
        *_, last = entry.metadata["snapshots"]
        return needed(catalog, replace(entry, metadata={**entry.metadata, "snapshots": [last]}), data)

    patch.setattr(replaced, "_needed", of_the_current_one)


def snapshots_do_not_keep_files_of_a_compaction(patch: pytest.MonkeyPatch) -> None:
    needed = replaced._needed
    patch.setattr(replaced, "_needed", lambda catalog, entry, _: needed(catalog, entry, None))


def publishes_are_not_listed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tables, "list_generation", lambda *_: None)


RULES: dict[Mutation, str] = {
    property_is_not_compared: "batches",
    no_look_after_a_refused_swap: "batches",
    marks_after_the_batch_is_closed: "batches",
    marks_move_backward: "batches",
    batch_is_planned_before_the_row_is_read: "batches",
    intent_is_unconditional: "batches",
    generations_that_are_not_done_come_in: "batches",
    number_is_written_in_a_second_swap: "batches",
    objects_that_snapshots_show_are_deleted: "batches",
    replaced_by_the_last_batch_is_expired: "batches",
    publishes_are_not_listed: "batches",
    young_files_of_the_table_are_deleted: "batches",
    only_the_current_snapshot_keeps_metadata: "batches",
    snapshots_do_not_keep_files_of_a_compaction: "compacted",
    compacted_hours_are_not_built_anew: "compacted",
    ancestry_is_not_compared: "rolled back",
    uuid_is_not_compared: "another table",
}
"""A rule that is removed, and the scenario in which it is missed."""


@pytest.mark.parametrize("mutation", RULES, ids=lambda mutation: mutation.__name__)
def test_each_removed_rule_is_detected(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    with pytest.raises((BrokenPromiseError, HybridRouterError)):
        list(histories(RULES[mutation]))


def test_changes_of_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ancestry_is_not_compared(monkeypatch)
    with pytest.raises(BrokenPromiseError):
        list(histories("rows of another writer"))


def _as_item(reference: BatchReference) -> dict[str, Any]:
    return {"number": reference.number, "key": reference.key, "sha256": reference.sha256}


def _table_key(row: TableRow) -> Any:
    return Key(f"table#{row.dataset}", "table")
