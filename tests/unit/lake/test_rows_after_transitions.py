"""Each transition writes the whole row that it promises, and nothing else changes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lake.ledger import ManifestRow, Published, State
from lake.ledger.transitions import successor_row
from lake.manifest import Lane
from lake.time import epoch_milliseconds, iso_utc
from tests.unit.lake.transitions import DOCUMENT, TOTALS, row_in_state
from tests.unit.lake.world import LEASE, World


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


def test_a_claim(world: World) -> None:
    row = row_in_state(world, "QUEUED")
    world.wait(timedelta(minutes=1))
    claim = world.ledger.manifests.claim(row, "jr_1", world.now, LEASE)
    assert claim is not None
    changes: dict[str, Any] = {"attempt": 1, "owner": "jr_1", "lease_until": epoch_milliseconds(world.now + LEASE)}
    changes["claim_nonce"] = claim.row.claim_nonce
    assert_row(world, replace(row, state=State.RUNNING, changed_at=iso_utc(world.now), **changes))
    assert claim.row == world.row(row.id)


def test_a_renewal(world: World) -> None:
    claim = world.claimed(row_in_state(world, "QUEUED"))
    world.wait(timedelta(minutes=1))
    world.ledger.manifests.renew(claim, world.now, LEASE)
    assert_row(world, replace(claim.row, lease_until=epoch_milliseconds(world.now + LEASE)))


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("exclusions", [None, "exclusions/a.json"])
def test_a_release(world: World, counted: bool, exclusions: str | None) -> None:
    row = row_in_state(world, "RUNNING")
    world.wait(timedelta(minutes=1))
    assert world.ledger.manifests.release(row, "because", world.now, exclusions, counted=counted)
    base = 0 if counted else 1
    changes: dict[str, Any] = {"reason": "because", "lease_until": 0, "base_attempt": base, "exclusions": exclusions}
    assert_row(world, replace(row, state=State.QUEUED, changed_at=iso_utc(world.now), **changes))


def test_a_commit(world: World) -> None:
    claim = world.claimed(row_in_state(world, "QUEUED"))
    world.wait(timedelta(minutes=1))
    world.ledger.manifests.commit(claim, DOCUMENT, world.now)
    assert_row(world, replace(claim.row, state=State.PUBLISHING, document=DOCUMENT, changed_at=iso_utc(world.now)))


def test_a_publish(world: World) -> None:
    row = row_in_state(world, "PUBLISHING")
    world.wait(timedelta(minutes=1))
    assert world.ledger.manifests.finish(row, TOTALS, world.now)
    now = iso_utc(world.now)
    published = Published(1, DOCUMENT, TOTALS)
    assert_row(world, replace(row, state=State.DONE, published=published, changed_at=now, finished_at=now))


@pytest.mark.parametrize("state", ["QUEUED", "RUNNING", "PUBLISHING"])
def test_a_failure(world: World, state: str) -> None:
    row = row_in_state(world, state)
    world.wait(timedelta(minutes=1))
    assert world.ledger.manifests.fail(row, "because", world.now)
    now = iso_utc(world.now)
    assert_row(world, replace(row, state=State.FAILED, reason="because", changed_at=now, finished_at=now))


@pytest.mark.parametrize("request_id", [None, "request-1"])
@pytest.mark.parametrize("state", ["DONE", "FAILED", "FAILED PUBLISH"])
def test_a_force(world: World, state: str, request_id: str | None) -> None:
    row = row_in_state(world, state)
    world.wait(timedelta(minutes=1))
    assert world.ledger.manifests.force(row, world.now, request_id)
    forgotten: dict[str, Any] = dict.fromkeys(("document", "exclusions", "reason", "finished_at"))
    changes = {"generation": 2, "base_attempt": row.attempt, "lease_until": 0, "request": request_id, **forgotten}
    now = iso_utc(world.now)
    queued = replace(row, state=State.QUEUED, lane=Lane.BATCH, changed_at=now, forced_at=now, **changes)
    assert_row(world, queued)


@pytest.mark.parametrize("state", ["QUEUED", "RUNNING"])
def test_a_supersede(world: World, state: str) -> None:
    row = row_in_state(world, state)
    successors = [world.manifest("a.json"), world.manifest("b.json")]
    world.wait(timedelta(minutes=1))
    assert world.ledger.manifests.supersede(row, successors, "because", world.now)
    ids = tuple(successor.id for successor in successors)
    changes: dict[str, Any] = {"superseded_by": ids, "reason": "because", "changed_at": iso_utc(world.now)}
    assert_row(world, replace(row, state=State.SUPERSEDED, **changes))
    for successor in successors:
        assert_row(world, successor_row(row, successor))


def test_a_recorded_reason(world: World) -> None:
    row = row_in_state(world, "QUEUED")
    world.wait(timedelta(minutes=1))
    assert world.ledger.manifests.record_reason(row, "denied")
    assert_row(world, replace(row, reason="denied"))


def test_an_abandoned_row_has_the_time_of_its_fence(world: World) -> None:
    world.wait(timedelta(minutes=1))
    row = world.ledger.manifests.abandon("nobody", world.now)
    assert row == world.row("nobody")
    assert (row.id, row.changed_at) == ("nobody", iso_utc(world.now))


def test_a_published_manifest_has_no_reason_of_an_attempt_before(world: World) -> None:
    row = row_in_state(world, "RUNNING")
    world.ledger.manifests.release(row, "it crashed", world.now)
    world.ledger.manifests.commit(world.claimed(world.row(row.id)), DOCUMENT, world.now)
    assert world.row(row.id).reason == "it crashed"
    world.ledger.manifests.finish(world.row(row.id), TOTALS, world.now)
    assert world.row(row.id).reason is None
