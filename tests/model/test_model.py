"""The protocol keeps its promises without faults, under every single fault, and in random histories."""

import os
import time

import pytest

from lake.ledger import State
from lake.manifest import Lane, Manifest, new_manifest_id
from lake.manifest_documents import write_manifest
from tests.model.actors import fake_runtime, worker
from tests.model.histories import explore, histories_with_one_fault, play, scripted
from tests.model.invariants import InvariantChecker
from tests.model.scenarios import SCENARIOS
from tests.model.scheduler import STALE_READ, Violation
from tests.model.world import PARTITION, World

SINGLE_FAULTS, RANDOM_HISTORIES = 100, 50
"""Approximate number of single faults of a scenario that are tried, and of random histories of each seed."""
SEED, SECONDS = int(os.environ.get("MODEL_SEED", "0")), float(os.environ.get("MODEL_SECONDS", "0"))
"""The first seed of the random histories. The next seeds follow until the seconds of a scenario are over."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_single_fault_breaks_a_promise(name: str) -> None:
    # Given a scenario, when no fault occurs, or one fault, event or switch, at any step
    for history in histories_with_one_fault(SCENARIOS[name], SINGLE_FAULTS):
        # Then readers never see a part of a manifest, and sweep and workers finish everything
        assert history.violation is None, history.describe()
        assert history.steps


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_random_history_breaks_a_promise(name: str) -> None:
    seed, until = SEED, time.monotonic() + SECONDS
    while seed == SEED or time.monotonic() < until:
        histories = explore(SCENARIOS[name], seed, RANDOM_HISTORIES)
        assert histories[-1].violation is None, f"MODEL_SEED={seed}: {histories[-1].describe()}"
        assert any(history.faults for history in histories)
        seed += 1


def test_a_publisher_of_the_right_document_publishes_nothing_after_it_was_changed() -> None:
    script = [("worker1", "complete_multipart_upload", "change_document:worker2")]
    history = scripted(SCENARIOS["tampered"], script)
    assert history.violation is None, history.describe()


def test_an_ignored_file_that_another_invocation_adopts_before_its_event_is_acknowledged_gets_an_owner() -> None:
    # Given a rule that is added while the event is routed, and a backfill that adopts the file at its acknowledgement
    script = [
        ("queue1", "get_bucket_versioning", "add_rule"),
        ("queue1", "delete_object", "switch:backfill1"),
        ("backfill1", "update_item", ""),
        ("backfill1", "put_object", "switch:queue1"),
    ]
    history = scripted(SCENARIOS["new rule"], script)
    assert history.violation is None, history.describe()


def test_rows_that_two_manifests_have_published_are_found_although_one_of_them_is_superseded() -> None:
    # Given a published manifest that is SUPERSEDED, which the product rejects, and another manifest of its file
    world = World()
    checker = InvariantChecker(world)
    world.after_write = checker.check
    with fake_runtime(world):
        world.queued("b")
        worker(world, None, "before")
        next(row for row in world.rows().values() if row["state"] == State.DONE)["state"] = State.SUPERSEDED
        services = world.router(None)
        again = Manifest(new_manifest_id(world.now), Lane.BATCH, PARTITION, "again", tuple(world.arrived))
        services.ledger.manifests.enqueue(write_manifest(services.s3, "control", again))
        worker(world, None, "after")
    # When, Then
    with pytest.raises(Violation, match="are published 2 times"):
        checker.check_end()


def test_a_stale_read_at_another_request_is_not_a_fault() -> None:
    history = play(SCENARIOS["workers"], lambda *_: STALE_READ)
    assert history.violation is None, history.describe()


def test_random_histories_are_replayed_by_their_seed() -> None:
    first, second = (explore(SCENARIOS["reprocess"], 3, 10) for _ in range(2))
    assert any(history.faults for history in first)
    assert first == second
