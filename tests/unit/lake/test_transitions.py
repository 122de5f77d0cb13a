"""Manifest rows: where each transition is legal, what it writes, why it was rejected; claims, generations, lists."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lake.errors import InvalidInputError, LeaseLostError, TerminalError
from lake.ledger import CommitReference, ManifestRow, Published, State
from lake.ledger.manifest_row import MAX_EARLIER_OWNERS, queued_row
from lake.ledger.transitions import successor_row
from lake.manifest import Lane
from lake.time import epoch_milliseconds, iso_utc
from tests.unit.lake.world import DOCUMENT, LEASE, STATES, TOTALS, World, row_in_state

OTHER_DOCUMENT = CommitReference("commits/other.json", "1" * 64)
SUCCESSORS = ("successor-1", "successor-2")


def claim(world: World, row: ManifestRow) -> bool:
    held = world.ledger.manifests.claim(row, "jr_2", world.now, LEASE, "nonce")
    assert held is None or held == world.row(row.id)
    return held is not None


def renew(world: World, row: ManifestRow) -> bool:
    try:
        world.ledger.manifests.renew(replace(row, state=State.RUNNING, owner="jr_1"), world.now, LEASE)
    except LeaseLostError:
        return False
    return True


def release(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.release(row, "because", world.now)


def release_uncounted(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.release(row, "because", world.now, "exclusions/a.json", counted=False)


def commit(world: World, row: ManifestRow) -> bool:
    try:
        world.ledger.manifests.commit(replace(row, state=State.RUNNING, owner="jr_1"), OTHER_DOCUMENT, world.now)
    except LeaseLostError:
        return False
    return True


def finish(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.finish(row, TOTALS, world.now)


def fail(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.fail(row, "because", world.now)


def force(world: World, row: ManifestRow) -> bool:
    try:
        return world.ledger.manifests.force(row, world.now, "request-1")
    except InvalidInputError:
        return False


def supersede(world: World, row: ManifestRow) -> bool:
    successors = [queued_row(replace(world.manifest(f"{name}.json"), id=name)) for name in SUCCESSORS]
    if not world.ledger.manifests.supersede(row, successors, "because", world.now):
        return False
    for successor in successors:
        assert_row(world, successor_row(row, successor))
    return True


Transition = Callable[[World, ManifestRow], bool]
LEGAL: dict[Transition, tuple[str, ...]] = {
    claim: ("QUEUED", "EXPIRED"),
    renew: ("RUNNING",),
    release: ("RUNNING", "EXPIRED"),
    release_uncounted: ("RUNNING", "EXPIRED"),
    commit: ("RUNNING",),
    finish: ("PUBLISHING",),
    fail: ("QUEUED", "RUNNING", "EXPIRED", "PUBLISHING"),
    force: ("DONE", "FAILED", "FAILED PUBLISH"),
    supersede: ("QUEUED", "RUNNING", "EXPIRED"),
}


def changed(world: World, row: ManifestRow, transition: Transition) -> ManifestRow:
    """The row after the transition."""
    now, until = iso_utc(world.now), epoch_milliseconds(world.now + LEASE)
    released = {"state": State.QUEUED, "reason": "because", "lease_until": 0}
    claimed = {"state": State.RUNNING, "attempt": row.attempt + 1, "owner": "jr_2", "claim_nonce": "nonce"}
    published, forgotten = Published(1, DOCUMENT, TOTALS), ("document", "exclusions", "reason", "finished_at")
    queued = {"state": State.QUEUED, "lane": Lane.BATCH, "generation": 2, "base_attempt": row.attempt, "lease_until": 0}
    changes: dict[Transition, dict[str, Any]] = {
        claim: {**claimed, "lease_until": until, "earlier_owners": (row.owner,) if row.owner else ()},
        renew: {"lease_until": until, "changed_at": row.changed_at},
        release: released,
        release_uncounted: {**released, "exclusions": "exclusions/a.json", "base_attempt": row.base_attempt + 1},
        commit: {"state": State.PUBLISHING, "document": OTHER_DOCUMENT, "reason": None},
        finish: {"state": State.DONE, "reason": None, "published": published, "finished_at": now},
        fail: {"state": State.FAILED, "reason": "because", "finished_at": now},
        force: {**queued, "forced_at": now, "request": "request-1", **dict.fromkeys(forgotten)},
        supersede: {"state": State.SUPERSEDED, "superseded_by": SUCCESSORS, "reason": "because"},
    }
    return replace(row, **{"changed_at": now, **changes[transition]})


def assert_row(world: World, expected: ManifestRow) -> None:
    """The row equals this one, without empty attributes, and is in the index while it is open, DONE or FAILED.

    The DONE manifests of these tests have an unreadable file.
    """
    assert world.row(expected.id) == expected
    key = {"pk": f"manifest#{expected.id}", "sk": "manifest"}
    item: dict[str, Any] = world.dynamodb.get_item(TableName="ledger", Key=key, ConsistentRead=True)["Item"]
    assert None not in item.values()
    listed = "UNREADABLE" if expected.state == State.DONE else expected.state
    entry = (f"{expected.lane}#{listed}", f"{expected.created_at}#{expected.id}")
    in_index = expected.open or expected.state in (State.DONE, State.FAILED)
    assert (item.get("open"), item.get("open_order")) == (entry if in_index else (None, None))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("transition", LEGAL)
def test_a_transition_changes_these_attributes_where_it_is_legal(
    world: World, transition: Transition, state: str
) -> None:
    # Given a row, with the reason of a previous attempt if it is open
    before = row_in_state(world, state)
    assert world.ledger.manifests.record_reason(before, "it crashed") == before.open
    row = world.row(before.id)
    assert row == (replace(before, reason="it crashed") if before.open else before)
    world.wait(LEASE - timedelta(milliseconds=1))
    # When
    applied = transition(world, row)
    # Then
    assert applied == (state in LEGAL[transition])
    assert_row(world, changed(world, row, transition) if applied else row)


@pytest.mark.parametrize("transition", LEGAL)
def test_a_transition_is_fenced_against_concurrent_changes(world: World, transition: Transition) -> None:
    # Given: a row that another run has claimed, even with an expired lease
    row = row_in_state(world, LEGAL[transition][0])
    if transition is force:
        world.ledger.manifests.force(row, world.now, "request-2")
    elif transition is finish:
        world.ledger.manifests.fail(row, "uploads vanished", world.now)
    elif row.state == State.QUEUED:
        world.claimed(row, "jr_7")
    else:
        world.wait(LEASE)
        world.claimed(world.row(row.id), "jr_7")
    meanwhile = world.row(row.id)
    # When, Then none of it is written
    assert not transition(world, row)
    assert world.row(row.id) == meanwhile
    assert world.ledger.manifests.get_many(SUCCESSORS) == [None, None]


@pytest.mark.parametrize("transition", LEGAL)
def test_a_repeated_transition_recognises_that_it_was_applied(world: World, transition: Transition) -> None:
    """As with the client's own retry: the first attempt was applied, the second one is rejected."""
    # Given
    row, call = row_in_state(world, LEGAL[transition][0]), world.faults.call

    def twice(name: str, method: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        if name in ("put_item", "update_item", "transact_write_items"):
            call(name, method, kwargs)
        return call(name, method, kwargs)

    world.faults.call = twice  # type: ignore[method-assign]
    # When, Then
    assert transition(world, row)
    assert_row(world, changed(world, row, transition))


def test_a_repeated_commit_recognises_what_was_published_and_forced_meanwhile(world: World) -> None:
    # Given a commit without an answer, which another process has published, and a request for the next generation
    held = world.claimed(world.queued("a.json"))
    manifests = world.ledger.manifests
    manifests.commit(held, DOCUMENT, world.now)
    manifests.finish(world.row(held.id), TOTALS, world.now)
    force(world, world.row(held.id))
    # When, Then
    manifests.commit(held, DOCUMENT, world.now)
    with pytest.raises(LeaseLostError):
        manifests.commit(held, OTHER_DOCUMENT, world.now)


def test_only_one_of_two_threads_of_a_run_claims(world: World) -> None:
    # Given two threads that have read the same row
    row = world.queued("a.json")
    # When both claim it for their run, then exactly one holds it
    claims = [world.ledger.manifests.claim(row, "jr_1", world.now, LEASE) for _ in range(2)]
    assert [claim is not None for claim in claims] == [True, False]


def released(world: World, row: ManifestRow) -> None:
    world.ledger.manifests.release(row, "another process", world.now)


def released_later(world: World, row: ManifestRow) -> None:
    released(world, row)
    released(world, world.claimed(world.row(row.id), "jr_2"))


def committed(world: World, row: ManifestRow) -> None:
    world.ledger.manifests.commit(replace(row, state=State.RUNNING, owner="jr_1"), DOCUMENT, world.now)


@pytest.mark.parametrize(("meanwhile", "over"), [(released, True), (released_later, False), (committed, False)])
def test_a_refused_release_reports_whether_the_attempt_was_abandoned(
    world: World, meanwhile: Callable[[World, ManifestRow], None], over: bool
) -> None:
    row = row_in_state(world, "RUNNING")
    meanwhile(world, row)
    changed = world.row(row.id)
    assert world.ledger.manifests.release(row, "because", world.now) == over
    assert world.row(row.id) == changed


def test_a_manifest_that_others_have_superseded_is_not_superseded_by_these(world: World) -> None:
    row, other = world.queued("a.json"), world.manifest("a.json")
    world.superseded(row, other)
    assert not supersede(world, row)
    assert world.row(row.id).superseded_by == (other.id,)


def test_an_abandoned_row_has_the_time_of_its_fence(world: World) -> None:
    world.wait(timedelta(minutes=1))
    row = world.ledger.manifests.abandon("nobody", world.now)
    assert row == world.row("nobody")
    assert (row.id, row.changed_at) == ("nobody", iso_utc(world.now))


def test_a_reason_is_written_once_and_not_into_a_row_that_has_changed(world: World) -> None:
    row = row_in_state(world, "QUEUED")
    world.ledger.manifests.record_reason(row, "denied")
    world.faults.reset()
    assert world.ledger.manifests.record_reason(world.row(row.id), "denied")
    assert world.faults.writes == []
    # When another run has claimed it, then its reason stays
    world.claimed(row)
    assert not world.ledger.manifests.record_reason(row, "other")
    assert world.row(row.id).reason == "denied"


def test_a_row_keeps_the_owners_of_its_attempts_up_to_the_maximum(world: World) -> None:
    row = world.queued("a.json")
    for number in range(1, MAX_EARLIER_OWNERS + 4):
        claim = world.claimed(world.row(row.id), f"jr_{number}")
        assert claim == world.row(row.id)
        world.wait(LEASE)
    last = world.row(row.id)
    assert last.owner == f"jr_{MAX_EARLIER_OWNERS + 3}"
    assert last.earlier_owners == tuple(f"jr_{number}" for number in range(3, MAX_EARLIER_OWNERS + 3))


def test_what_was_published_is_never_superseded(world: World) -> None:
    row = row_in_state(world, "DONE")
    force(world, row)
    forced = world.row(row.id)
    assert not supersede(world, forced)
    assert world.row(row.id) == forced


@pytest.mark.parametrize(
    ("state", "missing"),
    [("QUEUED", "manifest_sha256"), ("QUEUED", "partition"), ("DONE", "published")],
)
def test_a_row_without_an_attribute_that_is_always_written_is_refused(world: World, state: str, missing: str) -> None:
    row = row_in_state(world, state)
    key = {"pk": f"manifest#{row.id}", "sk": "manifest"}
    world.dynamodb.update_item(
        TableName="ledger", Key=key, UpdateExpression="REMOVE #n", ExpressionAttributeNames={"#n": missing}
    )
    with pytest.raises(TerminalError, match=rf"{row.id} is damaged .*{missing}.*restore the ledger"):
        world.row(row.id)


def test_a_successor_never_replaces_a_manifest_that_is_there(world: World) -> None:
    source, there = world.queued("a.json"), world.manifest("b.json")
    world.superseded(world.queued("b.json"), there)
    assert not world.ledger.manifests.supersede(source, [queued_row(there)], "merge", world.now)
    assert world.row(source.id) == source


def test_enqueue_after_abandon_and_abandon_after_enqueue(world: World) -> None:
    abandoned, alive = world.manifest("a.json"), world.manifest("b.json")
    manifests = world.ledger.manifests
    manifests.abandon(abandoned.id, world.now)
    assert manifests.enqueue(queued_row(abandoned)) == State.ABANDONED
    assert manifests.enqueue(queued_row(alive)) == State.QUEUED
    assert manifests.abandon(alive.id, world.now).state == State.QUEUED
    assert manifests.abandon(abandoned.id, world.now).state == State.ABANDONED
