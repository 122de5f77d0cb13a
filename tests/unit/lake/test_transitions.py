"""Transitions of a manifest: where each is legal, what it writes, and what a refused one was."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lake.errors import LeaseLostError
from lake.ledger import Claim, CommitReference, ManifestRow, Published, State
from lake.ledger.transitions import successor_row
from lake.manifest import Lane
from lake.time import epoch_milliseconds, iso_utc
from tests.unit.lake.transitions import (
    AFTERWARDS,
    DOCUMENT,
    LEGAL,
    STATES,
    TOTALS,
    Transition,
    claim,
    commit,
    fail,
    finish,
    force,
    release,
    row_in_state,
    supersede,
)
from tests.unit.lake.world import LEASE, World


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("transition", LEGAL)
def test_a_transition_is_applied_only_where_it_is_legal(world: World, transition: Transition, state: str) -> None:
    row = row_in_state(world, state)
    legal = state in LEGAL[transition]
    assert transition(world, row) == legal
    after = world.row(row.id)
    assert after.state == (AFTERWARDS[transition] if legal else row.state)
    assert legal or after == row


@pytest.mark.parametrize("transition", LEGAL)
def test_a_transition_is_fenced_against_concurrent_changes(world: World, transition: Transition) -> None:
    # Given: a row that another run has claimed, also after its lease expired
    row = row_in_state(world, LEGAL[transition][0])
    if transition is force:
        world.ledger.manifests.force(row, world.now)
    elif transition is finish:
        world.ledger.manifests.fail(row, "uploads vanished", world.now)
    elif row.state == State.QUEUED:
        world.claimed(row, "jr_7")
    else:
        world.wait(LEASE)
        world.claimed(world.row(row.id), "jr_7")
    meanwhile = world.row(row.id)
    # When, Then
    assert not transition(world, row)
    assert world.row(row.id) == meanwhile


@pytest.mark.parametrize("transition", [claim, release, commit, finish, fail, supersede])
def test_a_repeated_transition_recognises_that_it_was_applied(world: World, transition: Transition) -> None:
    """As the client's own retry does it: the first attempt was applied, the second one is refused."""
    row = row_in_state(world, LEGAL[transition][0])
    repeat_writes(world)
    assert transition(world, row)
    assert world.row(row.id).state == AFTERWARDS[transition]


def repeat_writes(world: World) -> None:
    """Send every write twice, and return the second answer only."""
    call = world.faults.call

    def twice(name: str, method: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        if name in ("put_item", "update_item", "transact_write_items"):
            call(name, method, kwargs)
        return call(name, method, kwargs)

    world.faults.call = twice  # type: ignore[method-assign]


OTHER_DOCUMENT = CommitReference("commits/other.json", "1" * 64)


def test_a_repeated_commit_recognises_what_was_published_and_forced_meanwhile(world: World) -> None:
    # Given a commit without an answer, which another process has published, and a request for the next generation
    held = world.claimed(world.queued("a.json"))
    manifests = world.ledger.manifests
    manifests.commit(held, DOCUMENT, world.now)
    manifests.finish(world.row(held.row.id), TOTALS, world.now)
    force(world, world.row(held.row.id))
    # When, Then
    manifests.commit(held, DOCUMENT, world.now)
    with pytest.raises(LeaseLostError):
        manifests.commit(held, OTHER_DOCUMENT, world.now)


def test_of_two_threads_of_a_run_one_claims(world: World) -> None:
    # Given two threads that have read the same row
    row = world.queued("a.json")
    # When both claim it for their run, then exactly one holds it
    claims = [world.ledger.manifests.claim(row, "jr_1", world.now, LEASE) for _ in range(2)]
    assert [claim is not None for claim in claims] == [True, False]


def released(world: World, row: ManifestRow) -> None:
    world.ledger.manifests.release(row, "another process", world.now)


def released_later(world: World, row: ManifestRow) -> None:
    released(world, row)
    released(world, world.claimed(world.row(row.id), "jr_2").row)


def committed(world: World, row: ManifestRow) -> None:
    world.ledger.manifests.commit(Claim(row, "jr_1"), DOCUMENT, world.now)


@pytest.mark.parametrize(("meanwhile", "over"), [(released, True), (released_later, False), (committed, False)])
def test_a_refused_release_tells_whether_the_attempt_was_given_up(
    world: World, meanwhile: Callable[[World, ManifestRow], None], over: bool
) -> None:
    row = row_in_state(world, "RUNNING")
    meanwhile(world, row)
    changed = world.row(row.id)
    assert world.ledger.manifests.release(row, "because", world.now) == over
    assert world.row(row.id) == changed


def test_a_manifest_that_others_have_superseded_is_not_superseded_by_these(world: World) -> None:
    row, others = world.queued("a.json"), [world.manifest("a.json")]
    assert world.ledger.manifests.supersede(row, others, "others", world.now)
    assert not supersede(world, row)
    assert world.row(row.id).superseded_by == (others[0].id,)


def assert_row(world: World, expected: ManifestRow) -> None:
    """The row is this one, without empty attributes, and in the index while it is open, or if it did not get through.

    The manifests of these tests that are DONE have an unreadable file.
    """
    assert world.row(expected.id) == expected
    key = {"pk": f"manifest#{expected.id}", "sk": "manifest"}
    item: dict[str, Any] = world.dynamodb.get_item(TableName="ledger", Key=key, ConsistentRead=True)["Item"]
    assert None not in item.values()
    listed = "UNREADABLE" if expected.state == State.DONE else expected.state
    entry = (f"{expected.lane}#{listed}", f"{expected.created_at}#{expected.id}")
    in_index = expected.open or expected.state in (State.DONE, State.FAILED)
    assert (item.get("open"), item.get("open_order")) == (entry if in_index else (None, None))


def claim_it(world: World, row: ManifestRow) -> dict[str, Any]:
    held = world.ledger.manifests.claim(row, "jr_1", world.now, LEASE, "nonce")
    assert held is not None
    assert held.row == world.row(row.id)
    until = epoch_milliseconds(world.now + LEASE)
    return {"state": State.RUNNING, "attempt": 1, "owner": "jr_1", "claim_nonce": "nonce", "lease_until": until}


def renew_it(world: World, row: ManifestRow) -> dict[str, Any]:
    world.ledger.manifests.renew(Claim(row, "jr_1"), world.now, LEASE)
    return {"lease_until": epoch_milliseconds(world.now + LEASE), "changed_at": row.changed_at}


def release_it(world: World, row: ManifestRow) -> dict[str, Any]:
    assert world.ledger.manifests.release(row, "because", world.now)
    return {"state": State.QUEUED, "reason": "because", "lease_until": 0}


def release_it_uncounted(world: World, row: ManifestRow) -> dict[str, Any]:
    assert world.ledger.manifests.release(row, "because", world.now, "exclusions/a.json", counted=False)
    changes = {"exclusions": "exclusions/a.json", "base_attempt": row.base_attempt + 1}
    return {"state": State.QUEUED, "reason": "because", "lease_until": 0, **changes}


def commit_it(world: World, row: ManifestRow) -> dict[str, Any]:
    world.ledger.manifests.commit(Claim(row, "jr_1"), DOCUMENT, world.now)
    return {"state": State.PUBLISHING, "document": DOCUMENT, "reason": None}


def finish_it(world: World, row: ManifestRow) -> dict[str, Any]:
    assert finish(world, row)
    published = Published(1, DOCUMENT, TOTALS)
    return {"state": State.DONE, "reason": None, "published": published, "finished_at": iso_utc(world.now)}


def fail_it(world: World, row: ManifestRow) -> dict[str, Any]:
    assert fail(world, row)
    return {"state": State.FAILED, "reason": "because", "finished_at": iso_utc(world.now)}


def force_it(world: World, row: ManifestRow) -> dict[str, Any]:
    assert world.ledger.manifests.force(row, world.now, "request-1")
    forgotten = dict.fromkeys(("document", "exclusions", "reason", "finished_at"))
    changes = {"generation": 2, "base_attempt": row.attempt, "lease_until": 0, "request": "request-1", **forgotten}
    return {"state": State.QUEUED, "lane": Lane.BATCH, "forced_at": iso_utc(world.now), **changes}


def supersede_it(world: World, row: ManifestRow) -> dict[str, Any]:
    successors = [world.manifest("a.json"), world.manifest("b.json")]
    assert world.ledger.manifests.supersede(row, successors, "because", world.now)
    for successor in successors:
        assert_row(world, successor_row(row, successor))
    superseded_by = tuple(successor.id for successor in successors)
    return {"state": State.SUPERSEDED, "superseded_by": superseded_by, "reason": "because"}


@pytest.mark.parametrize("has_reason", [False, True])
@pytest.mark.parametrize(
    ("apply", "states"),
    [
        (claim_it, ["QUEUED"]),
        (renew_it, ["RUNNING"]),
        (release_it, ["RUNNING"]),
        (release_it_uncounted, ["RUNNING"]),
        (commit_it, ["RUNNING"]),
        (finish_it, ["PUBLISHING"]),
        (fail_it, ["QUEUED", "RUNNING", "PUBLISHING"]),
        (force_it, ["DONE", "FAILED", "FAILED PUBLISH"]),
        (supersede_it, ["QUEUED", "RUNNING"]),
    ],
)
def test_a_transition_changes_these_attributes(
    world: World, apply: Callable[[World, ManifestRow], dict[str, Any]], states: list[str], has_reason: bool
) -> None:
    for state in states:
        # Given a row, and perhaps the reason of an attempt before
        row = row_in_state(world, state)
        if has_reason:
            world.ledger.manifests.record_reason(row, "it crashed")
            row = world.row(row.id)
        world.wait(timedelta(minutes=1))
        # When
        changes = apply(world, row)
        # Then
        assert_row(world, replace(row, **{"changed_at": iso_utc(world.now), **changes}))


def test_an_abandoned_row_has_the_time_of_its_fence(world: World) -> None:
    world.wait(timedelta(minutes=1))
    row = world.ledger.manifests.abandon("nobody", world.now)
    assert row == world.row("nobody")
    assert (row.id, row.changed_at) == ("nobody", iso_utc(world.now))


@pytest.mark.parametrize("state", STATES)
def test_only_an_open_manifest_gets_a_reason(world: World, state: str) -> None:
    row = row_in_state(world, state)
    assert world.ledger.manifests.record_reason(row, "denied") == row.open
    assert world.row(row.id).reason == ("denied" if row.open else row.reason)


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
