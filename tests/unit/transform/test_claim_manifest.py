"""What a run does with a manifest that it is given: claim it, finish what another run began, or leave it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lake.commit import CommitDocument, SourceCount, write_commit
from lake.documents import put_document
from lake.errors import NewerDocumentError
from lake.layout import commit_key, manifest_key
from lake.ledger import Claim, ManifestRow, State
from lake.manifest import Lane
from lake.manifest_documents import read_manifest, write_exclusions
from lake.publish import roll_forward
from lake.settings import BatchSettings, Settings
from tests.unit.lake.transitions import row_in_state
from tests.unit.lake.world import PARTITION, World
from transform import claim_manifest
from transform.claim_manifest import claim_or_finish
from transform.outcome import HELD, UNKNOWN, WAITING, ConversionOutcome
from transform.task_model import ConversionContext, JobServices

SETTINGS = Settings("test", batch=BatchSettings(max_attempts=2))


def given(world: World, manifest: str, run: str = "jr_1", *ended: str) -> Claim | ConversionOutcome:
    services = JobServices(world.s3, world.ledger, world.resources, SETTINGS, "eu-central-1")
    spark: Any = None
    context = ConversionContext(spark, services, run, world.clock, lambda name: name in ended, lambda _: None)
    return claim_or_finish(context, manifest)


def assert_claimed(world: World, manifest: str, claim: Claim | ConversionOutcome, attempt: int) -> None:
    assert isinstance(claim, Claim)
    assert claim.row == world.row(manifest)
    assert (claim.owner, claim.row.state, claim.row.attempt) == ("jr_1", State.RUNNING, attempt)


def after_attempts(world: World, row: ManifestRow, number: int) -> ManifestRow:
    """QUEUED after so many attempts."""
    for _ in range(number):
        world.ledger.manifests.release(world.claimed(world.row(row.id), "jr_0").row, "it crashed", world.now)
    return world.row(row.id)


def test_a_manifest_that_the_ledger_does_not_know_is_left(world: World) -> None:
    reason = "the ledger has no such manifest: nothing was done for it"
    assert given(world, "ghost") == ConversionOutcome("ghost", UNKNOWN, reason=reason)


@pytest.mark.parametrize("state", ["DONE", "FAILED", "ABANDONED"])
def test_a_manifest_that_has_ended_is_returned_as_it_is(world: World, state: str) -> None:
    row = row_in_state(world, state)
    assert given(world, row.id) == ConversionOutcome(row.id, row.state, reason=row.reason)
    assert world.row(row.id) == row


@pytest.mark.parametrize(
    ("lane", "successors", "followed"),
    [
        (Lane.BATCH, (Lane.BATCH, Lane.BATCH), True),
        # Pointers lead the stream lane to its own.
        (Lane.BATCH, (Lane.STREAM,), False),
        (Lane.STREAM, (Lane.BATCH,), False),
    ],
)
def test_a_run_of_the_batch_lane_goes_on_with_the_successors(
    world: World, lane: Lane, successors: tuple[Lane, ...], followed: bool
) -> None:
    row = world.queued("a.json", "b.json", lane=lane)
    manifests = [world.manifest(f"{number}.json", lane=each) for number, each in enumerate(successors)]
    assert world.ledger.manifests.supersede(row, manifests, "because", world.now)
    ids = tuple(manifest.id for manifest in manifests) if followed else ()
    assert given(world, row.id) == ConversionOutcome(row.id, State.SUPERSEDED, reason="because", successors=ids)


def publishing(world: World) -> ManifestRow:
    claim = world.claimed(world.queued("a.json"), "jr_0")
    document = CommitDocument(claim.row.id, 1, 1, PARTITION, "jr_0", "", (), (), (), (), 1)
    world.ledger.manifests.commit(claim, write_commit(world.raw_s3, "control", "commits/c", document), world.now)
    return world.row(claim.row.id)


def test_a_committed_manifest_is_published_and_not_converted(world: World) -> None:
    row = publishing(world)
    assert given(world, row.id) == ConversionOutcome(row.id, State.DONE)
    assert world.row(row.id).state == State.DONE


def test_a_manifest_that_a_newer_version_has_committed_waits_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NewerDocumentError("deploy it again")

    row = publishing(world)
    monkeypatch.setattr(claim_manifest, "roll_forward", refuse)
    assert given(world, row.id) == ConversionOutcome(row.id, WAITING, reason="deploy it again")


@pytest.mark.parametrize(
    ("holder", "ended", "held"),
    [
        ("jr_0", (), True),
        ("jr_0", ("jr_0",), False),
        # Another call of this run, whatever Glue says of it.
        ("jr_1", ("jr_1",), True),
    ],
)
def test_a_live_lease_is_kept_until_its_run_has_ended(
    world: World, holder: str, ended: tuple[str, ...], held: bool
) -> None:
    row = world.claimed(world.queued("a.json"), holder).row
    found = given(world, row.id, "jr_1", *ended)
    if held:
        assert found == ConversionOutcome(row.id, HELD, reason=f"run {holder} is working on it")
        assert world.row(row.id) == row
    else:
        assert_claimed(world, row.id, found, attempt=2)
        assert world.row(row.id).reason == f"run {holder} ended during attempt 1 without reporting a result"


def test_a_manifest_is_claimed_until_its_attempts_are_used_up(world: World) -> None:
    row = after_attempts(world, world.queued("a.json"), 1)
    claim = given(world, row.id)
    assert_claimed(world, row.id, claim, attempt=2)
    assert isinstance(claim, Claim)
    assert claim.row.lease_until == world.row(row.id).lease_until
    world.ledger.manifests.release(claim.row, "it crashed again", world.now)
    outcome = given(world, row.id)
    assert isinstance(outcome, ConversionOutcome)
    assert (outcome.state, world.row(row.id).state) == (State.FAILED, State.FAILED)
    assert str(outcome.reason).startswith("given up after 2 attempts: it crashed again; ")


def test_a_manifest_without_attempts_whose_document_was_changed_fails(world: World) -> None:
    row = after_attempts(world, world.queued("a.json", "b.json"), 2)
    put_document(world.raw_s3, "control", manifest_key(row.id), b"{}")
    outcome = given(world, row.id)
    assert isinstance(outcome, ConversionOutcome)
    assert outcome.state == State.FAILED
    assert str(outcome.reason).startswith("its documents cannot be used: ")
    assert "when the cause is removed" in str(outcome.reason)


def reprocessed_without(world: World, *gone: str, unread: str = "") -> ManifestRow:
    """A published manifest of the files a and b, QUEUED in its next generation; its last attempt found files gone.

    ``unread`` could not be read in the published generation.
    """
    row = world.queued("a", "b")
    manifest = read_manifest(world.raw_s3, "control", row, ("input",))
    claim = world.claimed(row)
    sources = tuple(
        SourceCount(file.uri, file.version, 100, 1, 1, 0, {}, None, "cut" if file.key == f"orders/{unread}" else None)
        for file in manifest.files
    )
    document = CommitDocument(row.id, 1, 1, row.partition, "jr_1", "", (), (), sources, (), 1)
    reference = write_commit(world.raw_s3, "control", commit_key(row.id, 1, 1, "n"), document)
    world.ledger.manifests.commit(claim, reference, world.now)
    roll_forward(world.s3, world.ledger, "control", world.row(row.id), world.clock)
    assert world.ledger.manifests.force(world.row(row.id), world.now)
    claim = world.claimed(world.row(row.id))
    excluded = {file: "it was deleted" for file in manifest.files if file.key.removeprefix("orders/") in gone}
    key = write_exclusions(world.raw_s3, "control", claim.row, excluded)
    world.ledger.manifests.release(claim.row, "files cannot be read", world.now, key)
    return world.row(row.id)


def test_a_manifest_that_could_only_lose_published_rows_is_done_with_them(world: World) -> None:
    # Given
    row = reprocessed_without(world, "a")
    # When
    outcome = given(world, row.id)
    # Then
    after = world.row(row.id)
    assert (after.state, after.generation, after.published) == (State.DONE, 2, row.published)
    assert after.exclusions is None
    assert isinstance(outcome, ConversionOutcome)
    assert (outcome.state, outcome.reason) == (State.DONE, after.reason)
    assert str(after.reason).startswith("1 file of its published generation 1 can no longer be read (first: s3://")
    # And the hour waits for no deletion
    assert not world.ledger.deletions.is_pending(row.partition)


def test_a_manifest_with_a_file_that_was_not_published_is_claimed_although_another_one_is_gone(world: World) -> None:
    row = reprocessed_without(world, "a", unread="b")
    claim = given(world, row.id)
    assert isinstance(claim, Claim)
    # When it uses up the attempts as well, then what is published stays
    world.ledger.manifests.release(claim.row, "it crashed", world.now)
    outcome = given(world, after_attempts(world, row, 1).id)
    assert isinstance(outcome, ConversionOutcome)
    assert outcome.state == State.DONE
    assert "what it has published stays; given up after 3 attempts: it crashed" in str(outcome.reason)
    # And nothing is tried if that one is gone, too
    row = reprocessed_without(world, "a", "b", unread="b")
    outcome = given(world, row.id)
    assert isinstance(outcome, ConversionOutcome)
    assert outcome.state == State.DONE


def test_a_manifest_whose_published_files_are_all_there_is_converted_as_a_whole(world: World) -> None:
    row = reprocessed_without(world, "b", unread="b")
    claim = given(world, row.id)
    assert isinstance(claim, Claim)


def test_the_lease_of_a_claim_is_that_of_the_settings(world: World) -> None:
    row = world.queued("a.json")
    given(world, row.id)
    lease = timedelta(seconds=SETTINGS.batch.lease_seconds)
    assert world.row(row.id).has_live_lease(world.now + lease - timedelta(milliseconds=1))
    assert not world.row(row.id).has_live_lease(world.now + lease)
