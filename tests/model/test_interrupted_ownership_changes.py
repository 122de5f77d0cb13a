"""Route, division, promote, poison splitting, hand-over and denied files: each is interrupted at each of its writes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from lake.ledger import ManifestRow, State
from lake.ledger.table import RefusedError
from lake.ledger.transitions import Manifests, supersede_actions
from lake.manifest import Lane, manifest_sha256
from lake.manifest_document import write_manifest
from lake.time import iso_utc
from tests.model.mutations import (
    Mutation,
    adopt_without_abandoning,
    forget_lost_pointers,
    supersede_unconditionally,
)
from tests.model.ownership_changes import INTERRUPTIONS, OWNERSHIP_CHANGES, interrupt, writes_without_interruption
from tests.model.scheduler import Violation

DOCUMENT, SUPERSEDE, POINTER, START_STREAM = "put_object", "transact_write_items", "put_object", "start_job_run"
COUNT_START = "update_item"
SUPERSEDERS = ("promote", "poison", "hand-over", "denied")
WRITTEN_BY = (
    "router.collect.divide",
    "router.requests.promote",
    "transform.poison_manifest",
    "transform.denied_files",
    "router.ownership.enqueue",
)


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
@pytest.mark.parametrize("name", OWNERSHIP_CHANGES)
def test_every_file_stays_in_one_manifest_at_whichever_write_the_operation_is_interrupted(
    name: str, interruption: str
) -> None:
    # Given the writes of a run without interruption
    writes = writes_without_interruption(OWNERSHIP_CHANGES[name])
    for number, write in enumerate(writes, start=1):
        # When one is interrupted, Then no file is lost or duplicated, and the next process finishes the work
        try:
            interrupt(OWNERSHIP_CHANGES[name], number, interruption)
        except Violation as violation:
            pytest.fail(f"{interruption} at write {number} of {writes} ({write}): {violation}")


def test_the_order_of_writes_is_documents_then_one_supersede_then_pointers() -> None:
    writes = {name: writes_without_interruption(change) for name, change in OWNERSHIP_CHANGES.items()}
    one_supersede = [DOCUMENT, DOCUMENT, SUPERSEDE, POINTER]
    assert writes["promote"] == [*one_supersede, *one_supersede, START_STREAM, COUNT_START]
    assert writes["divide"][:5] == ["update_item", DOCUMENT, DOCUMENT, "update_item", "update_item"]
    assert writes["hand-over"][-3:] == [DOCUMENT, SUPERSEDE, "delete_object"]
    for name in ("poison", "denied"):
        divided = writes[name]
        assert divided[divided.index(SUPERSEDE) - 2 : divided.index(SUPERSEDE)] == [DOCUMENT, DOCUMENT]
    assert writes["route"][:4] == [DOCUMENT, *["put_item"] * 3]
    assert writes["route"][-1] == "delete_object"


@contextmanager
def documents_after_the_rows() -> Iterator[None]:
    pending: dict[str, Callable[[], str]] = {}
    supersede, enqueue_row = Manifests.supersede, Manifests.enqueue_row

    def later(s3: Any, bucket: str, manifest: Any) -> str:
        pending[manifest.id] = lambda: write_manifest(s3, bucket, manifest)
        return manifest_sha256(manifest)

    def supersede_first(self: Manifests, sources: Any, successors: Any, reason: str, now: Any) -> bool:
        done = supersede(self, sources, successors, reason, now)
        for manifest in successors:
            pending.pop(manifest.id)()
        return done

    def enqueue_first(self: Manifests, row: ManifestRow) -> State:
        state = enqueue_row(self, row)
        pending.pop(row.id)()
        return state

    with ExitStack() as stack:
        for module in WRITTEN_BY:
            stack.enter_context(patch(f"{module}.write_manifest", later))
        stack.enter_context(patch.object(Manifests, "supersede", supersede_first))
        stack.enter_context(patch.object(Manifests, "enqueue_row", enqueue_first))
        yield


def _one_by_one(order: int) -> AbstractContextManager[Any]:
    """Each action of the supersede in its own transaction: successors first (-1), or sources first (1)."""

    def supersede(self: Manifests, sources: Any, successors: Any, reason: str, now: Any) -> bool:
        try:
            for action in supersede_actions(self._table.name, sources, successors, reason, iso_utc(now))[::order]:
                self._table.transact([action])
        except RefusedError:
            return False
        return True

    return patch.object(Manifests, "supersede", supersede)


def successors_before_sources() -> AbstractContextManager[Any]:
    return _one_by_one(-1)


def sources_before_successors() -> AbstractContextManager[Any]:
    return _one_by_one(1)


def promote_writes_no_second_pointer() -> AbstractContextManager[Any]:
    """A manifest that is in the stream lane counts as promoted, even if its pointer was never written."""
    from router.requests.steps import NextStep, Step, next_promote_step

    def careless(row: ManifestRow | None) -> NextStep:
        decision = next_promote_step(row)
        return NextStep(Step.LEAVE, "inStream", "there") if decision.step == Step.POINT else decision

    return patch("router.requests.promote.next_promote_step", careless)


def promote_forgets_the_remaining_files() -> AbstractContextManager[Any]:
    supersede = Manifests.supersede

    def forgetful(self: Manifests, sources: Any, successors: Any, reason: str, now: Any) -> bool:
        urgent = [manifest for manifest in successors if manifest.lane == Lane.STREAM]
        return supersede(self, sources, urgent or successors, reason, now)

    return patch.object(Manifests, "supersede", forgetful)


MUTATIONS: list[tuple[Mutation, str]] = [
    *((documents_after_the_rows, name) for name in OWNERSHIP_CHANGES),
    *((successors_before_sources, name) for name in SUPERSEDERS),
    *((sources_before_successors, name) for name in SUPERSEDERS),
    *((supersede_unconditionally, name) for name in SUPERSEDERS),
    (promote_writes_no_second_pointer, "promote"),
    (promote_forgets_the_remaining_files, "promote"),
    (adopt_without_abandoning, "route"),
    (forget_lost_pointers, "route"),
]


@pytest.mark.parametrize(("mutation", "name"), MUTATIONS)
def test_removing_any_rule_is_detected(mutation: Mutation, name: str) -> None:
    writes = len(writes_without_interruption(OWNERSHIP_CHANGES[name]))
    with mutation():
        # A mutation may add writes to the operation.
        numbers = range(1, writes + 3)
        assert any(_breaks(name, number, interruption) for interruption in INTERRUPTIONS for number in numbers)


def _breaks(name: str, number: int, interruption: str) -> bool:
    try:
        interrupt(OWNERSHIP_CHANGES[name], number, interruption)
    except Violation:
        return True
    return False
