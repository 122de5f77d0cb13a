"""Route, merge, promote, poison splitting and the hand-over to the batch lane die between any two of their writes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from lake.ledger import ManifestRow, State
from lake.ledger.manifests import Manifests
from lake.ledger.supersede import supersede_actions
from lake.ledger.table import RefusedError, Where
from lake.manifest import Lane, write_manifest
from lake.time import iso_utc
from tests.model.ownership_changes import MOVERS, WHEN, kill, quiet_writes
from tests.model.scheduler import Violation
from tests.model.world import PARTITION

DOCUMENT, SUPERSEDE, POINTER, START_STREAM = "put_object", "transact_write_items", "put_object", "start_job_run"
SUPERSEDERS = ("merge", "promote", "poison", "hand-over")
WRITTEN_BY = ("router.plan.merge", "router.promote.move", "transform.poison_manifest", "router.ownership.own")
Sabotage = Callable[[], AbstractContextManager[Any]]


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", MOVERS)
def test_every_file_stays_in_one_manifest_wherever_its_mover_is_struck(name: str, when: str) -> None:
    # Given: as many writes as an undisturbed run makes
    writes = quiet_writes(MOVERS[name])
    for number, write in enumerate(writes, start=1):
        # When: one is struck, Then: nothing is lost or doubled, and those who come after it bring it to its end
        try:
            kill(MOVERS[name], number, when)
        except Violation as violation:
            pytest.fail(f"{when} write {number} of {writes} ({write}): {violation}")


def test_the_order_of_writes_is_documents_then_one_supersede_then_pointers() -> None:
    one = [DOCUMENT, DOCUMENT, SUPERSEDE, POINTER]
    assert quiet_writes(MOVERS["promote"]) == [*one, *one, START_STREAM]
    assert quiet_writes(MOVERS["merge"])[:2] == [DOCUMENT, SUPERSEDE]
    assert quiet_writes(MOVERS["hand-over"])[-3:] == [DOCUMENT, SUPERSEDE, "delete_object"]
    poison = quiet_writes(MOVERS["poison"])
    assert poison[poison.index(SUPERSEDE) - 2 : poison.index(SUPERSEDE)] == [DOCUMENT, DOCUMENT]
    assert quiet_writes(MOVERS["route"])[:3] == ["put_item"] * 3


@contextmanager
def documents_after_the_rows() -> Iterator[None]:
    pending: dict[str, Callable[[], None]] = {}
    supersede, enqueue = Manifests.supersede, Manifests.enqueue

    def later(s3: Any, bucket: str, manifest: Any) -> None:
        pending[manifest.id] = lambda: write_manifest(s3, bucket, manifest)

    def supersede_first(self: Manifests, sources: Any, successors: Any, reason: str, now: Any) -> bool:
        done = supersede(self, sources, successors, reason, now)
        for manifest in successors:
            pending.pop(manifest.id)()
        return done

    def enqueue_first(self: Manifests, manifest: Any) -> State:
        state = enqueue(self, manifest)
        pending.pop(manifest.id)()
        return state

    with ExitStack() as stack:
        for module in WRITTEN_BY:
            stack.enter_context(patch(f"{module}.write_manifest", later))
        stack.enter_context(patch.object(Manifests, "supersede", supersede_first))
        stack.enter_context(patch.object(Manifests, "enqueue", enqueue_first))
        yield


def _one_by_one(order: int) -> AbstractContextManager[Any]:
    """Each action of the supersede by itself: successors first, or sources first."""

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


def supersede_without_looking() -> AbstractContextManager[Any]:
    return patch("lake.ledger.supersede.same", lambda _: [Where("pk", "exists")])


def promote_only_points_once() -> AbstractContextManager[Any]:
    """What is in the stream lane already is taken for done."""
    from router.promote.decide import Decision, Step, decide

    def careless(row: ManifestRow | None) -> Decision:
        decision = decide(row)
        return Decision(Step.LEAVE, "inStream", "there") if decision.step == Step.POINT else decision

    return patch("router.promote.move.decide", careless)


def promote_forgets_the_others() -> AbstractContextManager[Any]:
    supersede = Manifests.supersede

    def forgetful(self: Manifests, sources: Any, successors: Any, reason: str, now: Any) -> bool:
        urgent = [manifest for manifest in successors if manifest.lane == Lane.STREAM]
        return supersede(self, sources, urgent or successors, reason, now)

    return patch.object(Manifests, "supersede", forgetful)


def adopt_without_abandoning() -> AbstractContextManager[Any]:
    def unfenced(self: Manifests, manifest: str, now: Any) -> ManifestRow:
        return ManifestRow(manifest, State.ABANDONED, Lane.BATCH, PARTITION, "", 0, 0)

    return patch.object(Manifests, "abandon", unfenced)


def no_sweep_of_pointers() -> AbstractContextManager[Any]:
    return patch("router.sweep.handler.renew_pointers", lambda *_: {})


SABOTAGES: list[tuple[Sabotage, str]] = [
    *((documents_after_the_rows, name) for name in MOVERS),
    *((successors_before_sources, name) for name in SUPERSEDERS),
    *((sources_before_successors, name) for name in SUPERSEDERS),
    *((supersede_without_looking, name) for name in SUPERSEDERS),
    (promote_only_points_once, "promote"),
    (promote_forgets_the_others, "promote"),
    (adopt_without_abandoning, "route"),
    (no_sweep_of_pointers, "route"),
]


@pytest.mark.parametrize(("sabotage", "name"), SABOTAGES)
def test_a_rule_that_is_left_out_is_missed(sabotage: Sabotage, name: str) -> None:
    number = len(quiet_writes(MOVERS[name]))
    with sabotage():
        assert any(_broken(name, n, when) for when in WHEN for n in range(1, number + 3))


def _broken(name: str, number: int, when: str) -> bool:
    try:
        kill(MOVERS[name], number, when)
    except Violation:
        return True
    return False
