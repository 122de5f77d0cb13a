"""Manifest rows: claims and leases, generations, supersede, abandon; the lists of those that did not get through."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lake.errors import TerminalError
from lake.ledger import Failure, ManifestRow, State
from lake.ledger.manifest_row import MAX_EARLIER_OWNERS
from lake.manifest import Lane, manifest_sha256
from tests.unit.lake.transitions import TOTALS, claim, done, fail, force, row_in_state, supersede
from tests.unit.lake.world import LEASE, PARTITION, World


def test_a_row_keeps_the_owners_of_its_attempts_up_to_the_maximum(world: World) -> None:
    row = world.queued("a.json")
    for number in range(1, MAX_EARLIER_OWNERS + 4):
        claim = world.claimed(world.row(row.id), f"jr_{number}")
        assert claim.row == world.row(row.id)
        world.wait(LEASE)
    last = world.row(row.id)
    assert last.owner == f"jr_{MAX_EARLIER_OWNERS + 3}"
    assert last.earlier_owners == tuple(f"jr_{number}" for number in range(3, MAX_EARLIER_OWNERS + 3))


def test_a_queued_row_has_what_its_manifest_has_and_no_history(world: World) -> None:
    manifest = replace(world.manifest("a.json", "b.json.gz", lane=Lane.STREAM), urgent=True)
    world.ledger.manifests.enqueue(manifest)
    assert world.row(manifest.id) == ManifestRow(
        id=manifest.id,
        state=State.QUEUED,
        lane=Lane.STREAM,
        partition=PARTITION,
        created_at=manifest.created_at,
        bytes=200,
        files=2,
        compressed_bytes=100,
        urgent=True,
        manifest_sha256=manifest_sha256(manifest),
        changed_at=manifest.created_at,
    )


def test_a_live_lease_excludes_other_claims_to_its_last_millisecond(world: World) -> None:
    row = world.queued("a.json")
    world.claimed(row)
    world.wait(LEASE - timedelta(milliseconds=1))
    assert not claim(world, world.row(row.id))
    world.wait(timedelta(milliseconds=1))
    assert claim(world, world.row(row.id))


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


def test_supersede_is_all_or_nothing(world: World) -> None:
    # Given: a row that has changed
    source, successor = world.queued("a.json", "b.json"), world.manifest("a.json")
    held = world.claimed(source)
    # When, Then
    assert not world.ledger.manifests.supersede(source, [successor], "split", world.now)
    assert world.ledger.manifests.get(successor.id) is None
    assert world.row(source.id) == held.row


def test_a_successor_never_replaces_a_manifest_that_is_there(world: World) -> None:
    source, there = world.queued("a.json"), world.manifest("b.json")
    assert world.ledger.manifests.supersede(world.queued("b.json"), [there], "merge", world.now)
    assert not world.ledger.manifests.supersede(source, [there], "merge", world.now)
    assert world.row(source.id) == source


def test_enqueue_after_abandon_and_abandon_after_enqueue(world: World) -> None:
    abandoned, alive = world.manifest("a.json"), world.manifest("b.json")
    manifests = world.ledger.manifests
    manifests.abandon(abandoned.id, world.now)
    assert manifests.enqueue(abandoned) == State.ABANDONED
    assert manifests.enqueue(alive) == State.QUEUED
    assert manifests.abandon(alive.id, world.now).state == State.QUEUED
    assert manifests.abandon(abandoned.id, world.now).state == State.ABANDONED


def test_a_request_that_is_repeated_recognises_the_generation_that_it_queued(world: World) -> None:
    # Given: a manifest that a request has forced, whose answer was lost
    row = row_in_state(world, "FAILED")
    assert world.ledger.manifests.force(row, world.now, "request-1")
    # When, Then: the same write again was this request's own, also after a claim; another request's was not
    assert world.ledger.manifests.force(row, world.now, "request-1")
    world.claimed(world.row(row.id))
    assert world.ledger.manifests.force(row, world.now, "request-1")
    assert not world.ledger.manifests.force(row, world.now, "request-2")
    assert not world.ledger.manifests.force(row, world.now)
    assert (world.row(row.id).generation, world.row(row.id).request) == (2, "request-1")
    # When a later request has no name, then that of the generation before is forgotten
    fail(world, world.row(row.id))
    force(world, world.row(row.id))
    assert (world.row(row.id).generation, world.row(row.id).request) == (3, None)


def listed(world: World, failure: Failure, lane: Lane = Lane.BATCH) -> list[str]:
    return [row.id for row in world.ledger.manifests.failures(lane, failure)]


def test_only_a_manifest_with_unreadable_files_is_listed_when_it_is_done(world: World) -> None:
    unreadable = done(world, world.queued("a.json"))
    done(world, world.queued("b.json"), replace(TOTALS, failed_files=0))
    assert listed(world, Failure.UNREADABLE) == [unreadable.id]
    assert listed(world, Failure.FAILED) == listed(world, Failure.UNREADABLE, Lane.STREAM) == []
