"""How often a manifest is tried, and what becomes of it then: successors supersede it, or it ends FAILED."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, Partition
from lake.manifest_documents import read_manifest, write_manifest
from lake.settings import BatchSettings, Settings
from lake.time import iso_utc
from tests.unit.lake.transitions import row_in_state
from tests.unit.lake.world import World
from transform.give_up import attempts_allowed, supersede_or_fail
from transform.task_model import JobServices

SETTINGS = Settings("test", batch=BatchSettings(max_attempts=5))
ROW = ManifestRow("m", State.QUEUED, Lane.BATCH, Partition("orders", "2026-11-20", 9), "", 100, 1)


@pytest.mark.parametrize(("exclusions", "allowed"), [(None, 5), ("exclusions/m.json", 6)])
def test_the_attempt_that_found_unreadable_files_does_not_count(exclusions: str | None, allowed: int) -> None:
    assert attempts_allowed(SETTINGS, replace(ROW, exclusions=exclusions)) == allowed


def services(world: World) -> JobServices:
    return JobServices(world.s3, world.ledger, world.resources, SETTINGS, "eu-central-1")


def tried_row(world: World, lane: Lane, *names: str) -> ManifestRow:
    """QUEUED after an attempt; the clock is a minute later. In the stream lane its files are urgent."""
    manifest = replace(world.manifest(*names, lane=lane), urgent=lane == Lane.STREAM)
    write_manifest(world.raw_s3, "control", manifest)
    world.ledger.manifests.enqueue(manifest)
    world.ledger.manifests.release(world.claimed(world.row(manifest.id)).row, "it crashed", world.now)
    world.wait(timedelta(minutes=1))
    return world.row(manifest.id)


def successors(world: World, row: ManifestRow) -> list[Manifest]:
    rows = map(world.row, row.superseded_by)
    return [read_manifest(world.raw_s3, "control", successor, ("input",)) for successor in rows]


@pytest.mark.parametrize(
    ("lane", "names", "divided"),
    [
        (Lane.STREAM, "a", ["a"]),
        (Lane.STREAM, "abc", ["abc"]),
        (Lane.BATCH, "ab", ["a", "b"]),
        (Lane.BATCH, "abc", ["a", "bc"]),
        (Lane.BATCH, "abcd", ["ab", "cd"]),
    ],
)
def test_a_manifest_of_the_batch_lane_is_halved_and_one_of_the_stream_lane_is_not(
    world: World, lane: Lane, names: str, divided: list[str]
) -> None:
    # Given
    row = tried_row(world, lane, *names)
    # When
    assert supersede_or_fail(services(world), row, world.now)
    # Then
    after = world.row(row.id)
    assert (after.state, after.reason) == (State.SUPERSEDED, "given up after 1 attempt: it crashed")
    found = successors(world, after)
    assert [[file.key for file in one.files] for one in found] == [
        [f"orders/{name}" for name in part] for part in divided
    ]
    kinds = {(one.lane, one.urgent, one.created_at) for one in found}
    assert kinds == {(Lane.BATCH, False, iso_utc(world.now))}
    assert {world.row(one.id).state for one in found} == {State.QUEUED}


def test_a_file_alone_fails(world: World) -> None:
    row = tried_row(world, Lane.BATCH, "a")
    assert supersede_or_fail(services(world), row, world.now)
    after = world.row(row.id)
    assert (after.state, after.superseded_by) == (State.FAILED, ())
    assert after.reason is not None
    assert after.reason.startswith("given up after 1 attempt: it crashed; when the cause is removed, run ")


def test_a_manifest_that_was_published_before_fails_and_stays_published(world: World) -> None:
    done = row_in_state(world, "DONE")
    assert world.ledger.manifests.force(done, world.now)
    row = world.row(done.id)
    assert supersede_or_fail(services(world), row, world.now)
    after = world.row(done.id)
    assert (after.state, after.published) == (State.FAILED, done.published)


def test_a_manifest_that_another_run_has_claimed_is_left_to_it(world: World) -> None:
    row = tried_row(world, Lane.BATCH, "a", "b")
    world.claimed(row)
    claimed = world.row(row.id)
    assert not supersede_or_fail(services(world), row, world.now)
    assert world.row(row.id) == claimed
