"""A file that was put again after its manifest could not read it: one other manifest takes it, whatever crashes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lake.commit import CommitDocument, SourceCount, write_commit
from lake.exclusions import read_exclusions
from lake.layout import commit_key
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, new_manifest_id, read_manifest, write_manifest
from lake.publish import roll_forward
from router.route.handler import route
from router.sweep.handler import sweep
from tests.unit.lake.faults import Crash, Faults
from tests.unit.router.conftest import Deployment, new_deployment
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import delay, drop, lose_answer

LOST, READ = "clicks/lost.json", "clicks/read.json"
WRITES = 10
"""Intent, refused row, list of relinquished files, DONE manifest, adopted row; document, list and row of the hour, and
row of the new manifest; end of the intent."""
EVERY_WRITE = range(1, WRITES + 1)


def event(deployment: Deployment, *keys: str) -> Any:
    """The event of a put in a bucket without versions, at the time of the deployment's clock."""
    time = deployment.now.isoformat()
    return batch(*(message(key, s3_record(key, versionId=None, time=time)) for key in keys))


def send(deployment: Deployment, *keys: str) -> list[str]:
    return failures(route(event(deployment, *keys), deployment.services))


def read_files(deployment: Deployment, row: ManifestRow) -> list[str]:
    """Keys of the files that the next attempt at a manifest reads."""
    manifest = read_manifest(deployment.raw_s3, "control", row, ("input",))
    left_out = read_exclusions(deployment.raw_s3, "control", row.relinquished, manifest)
    return [file.key for file in manifest.files if file not in left_out]


def publish(deployment: Deployment, row: ManifestRow) -> ManifestRow:
    """DONE; the file LOST could not be read."""
    claim = deployment.claimed(row)
    manifest = read_manifest(deployment.raw_s3, "control", row, ("input",))
    sources = tuple(
        SourceCount(file.uri, file.version, file.size, 0, 0, 0, {}, None, "it is gone" if file.key == LOST else None)
        for file in manifest.files
    )
    document = CommitDocument(
        row.id, row.generation, claim.row.attempt, row.partition, "jr_1", "", (), (), sources, (), 1
    )
    key = commit_key(row.id, row.generation, claim.row.attempt, "n")
    deployment.ledger.manifests.commit(claim, write_commit(deployment.s3, "control", key, document), deployment.now)
    roll_forward(deployment.s3, deployment.ledger, "control", deployment.row(row.id), deployment.clock)
    return deployment.row(row.id)


def waiting(deployment: Deployment) -> ManifestRow:
    [row] = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    return deployment.row(row.id)


def routed(deployment: Deployment) -> ManifestRow:
    """A QUEUED manifest of both files."""
    deployment.configure(peak={"hours": []})
    assert send(deployment, LOST, READ) == []
    return waiting(deployment)


def lost(deployment: Deployment) -> ManifestRow:
    """A DONE manifest that could not read one of its two files; the clock is an hour later."""
    row = publish(deployment, routed(deployment))
    deployment.wait(timedelta(hours=1))
    deployment.faults.reset()
    return row


def assert_taken_once(deployment: Deployment, done: ManifestRow) -> None:
    """One waiting manifest reads the file, and the DONE one never reads it again."""
    assert read_files(deployment, waiting(deployment)) == [LOST]
    done = deployment.row(done.id)
    assert done.state == State.DONE
    assert read_files(deployment, done) == [READ]
    [row] = deployment.ledger.arrivals.versions("input", LOST)
    assert row.manifest == waiting(deployment).id


def test_the_number_of_writes_without_faults(deployment: Deployment) -> None:
    done = lost(deployment)
    assert send(deployment, LOST) == []
    assert len(deployment.faults.writes) == WRITES
    assert_taken_once(deployment, done)


def test_a_redelivered_event_and_a_file_that_was_read_change_nothing(deployment: Deployment) -> None:
    old = event(deployment, LOST, READ)
    done = lost(deployment)
    assert failures(route(old, deployment.services)) == []
    assert send(deployment, READ) == []
    assert list(deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)) == []
    assert deployment.row(done.id).relinquished is None


def test_a_clock_behind_that_of_s3_makes_no_second_put_of_the_first(deployment: Deployment) -> None:
    # Given an event of the future, by the clock of the process that records it
    deployment.wait(timedelta(seconds=3))
    put_once = event(deployment, LOST, READ)
    deployment.wait(timedelta(seconds=-3))
    deployment.configure(peak={"hours": []})
    route(put_once, deployment.services)
    done = publish(deployment, waiting(deployment))
    # When it is redelivered, Then its manifest keeps it; and one that really came later is taken once
    deployment.wait(timedelta(hours=1))
    assert failures(route(put_once, deployment.services)) == []
    assert deployment.row(done.id).relinquished is None
    put_again = event(deployment, LOST)
    deployment.wait(timedelta(seconds=-3))
    for _ in range(2):
        assert failures(route(put_again, deployment.services)) == []
    assert_taken_once(deployment, done)


def test_the_later_of_two_events_of_a_batch_decides(deployment: Deployment) -> None:
    old = s3_record(LOST, versionId=None, time=deployment.now.isoformat())
    done = lost(deployment)
    new = s3_record(LOST, versionId=None, time=deployment.now.isoformat())
    both = batch(message("new", new), message("old", old))
    assert failures(route(both, deployment.services)) == []
    assert_taken_once(deployment, done)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_crash_before_any_write_is_completed_by_the_redelivery_or_by_the_sweep(number: int) -> None:
    for finish in ("redelivery", "sweep"):
        with new_deployment() as deployment:
            # Given an invocation that dies before one of its writes
            done = lost(deployment)
            put_again = event(deployment, LOST)
            deployment.faults.crash_before = number
            with pytest.raises(Crash):
                route(put_again, deployment.services)
            deployment.faults.reset()
            deployment.wait(timedelta(minutes=12))
            # When only one of both comes; before the intent nothing was written that a sweep could resume
            if finish == "sweep" and number > 1:
                sweep(deployment.services)
            else:
                assert failures(route(put_again, deployment.services)) == []
            # Then
            assert_taken_once(deployment, done)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("fault", [lose_answer, drop, delay])
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_write_without_an_answer_changes_nothing(fault: Callable[[Faults, int], None], number: int) -> None:
    with new_deployment() as deployment:
        done = lost(deployment)
        put_again = event(deployment, LOST)
        fault(deployment.faults, number)
        route(put_again, deployment.services)
        deployment.faults.deliver()
        deployment.faults.reset()
        deployment.wait(timedelta(minutes=12))
        assert failures(route(put_again, deployment.services)) == []
        assert_taken_once(deployment, done)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_generation_that_begins_meanwhile_and_the_event_never_both_take_the_file(number: int) -> None:
    with new_deployment() as deployment:
        # Given an invocation that stalls before a write while its manifest is queued for the next generation
        done = lost(deployment)
        put_again = event(deployment, LOST)

        def meanwhile() -> None:
            assert deployment.ledger.manifests.force(deployment.row(done.id), deployment.now)

        deployment.faults.pause = (number, meanwhile)
        route(put_again, deployment.services)
        deployment.wait(timedelta(minutes=12))
        assert failures(route(put_again, deployment.services)) == []
        # Then exactly one waiting manifest reads each file
        rows = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
        assert sorted(key for row in rows for key in read_files(deployment, row)) == [LOST, READ]


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_an_attempt_that_begins_meanwhile_and_another_manifest_never_both_read_the_file(number: int) -> None:
    with new_deployment() as deployment:
        # Given an invocation that stalls before a write while the next generation plans what it reads
        done = lost(deployment)
        put_again = event(deployment, LOST)
        planned: list[str] = []

        def meanwhile() -> None:
            assert deployment.ledger.manifests.force(deployment.row(done.id), deployment.now)
            claim = deployment.claimed(deployment.row(done.id))
            planned.extend(read_files(deployment, claim.row))

        deployment.faults.pause = (number, meanwhile)
        route(put_again, deployment.services)
        deployment.wait(timedelta(minutes=12))
        assert failures(route(put_again, deployment.services)) == []
        # Then each file is read once
        rows = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
        assert sorted([*planned, *(key for row in rows for key in read_files(deployment, row))]) == [LOST, READ]


def test_a_merged_manifest_relinquishes_the_file_of_its_source(deployment: Deployment) -> None:
    # Given a manifest that was superseded by the one that could not read the file
    source = routed(deployment)
    files = read_manifest(deployment.raw_s3, "control", source, ("input",)).files
    now = deployment.now
    merged = Manifest(new_manifest_id(now), Lane.BATCH, source.partition, now.isoformat(), files)
    write_manifest(deployment.raw_s3, "control", merged)
    assert deployment.ledger.manifests.supersede([source], [merged], "test", now)
    done = publish(deployment, deployment.row(merged.id))
    # When the file is put again
    deployment.wait(timedelta(hours=1))
    assert send(deployment, LOST) == []
    # Then
    assert_taken_once(deployment, done)


def test_a_file_of_a_manifest_that_is_being_converted_is_postponed_until_it_has_ended(deployment: Deployment) -> None:
    # Given a claimed manifest
    row = routed(deployment)
    claim = deployment.claimed(row)
    deployment.wait(timedelta(minutes=6))
    # When its file is put again: the event is acknowledged, and its intent is kept as long as the attempt lasts
    assert send(deployment, LOST) == []
    deployment.wait(timedelta(minutes=3))
    assert sweep(deployment.services)["resumed"] == 0
    assert len(deployment.keys("control", "intents/")) == 1
    # Then it is taken once the manifest has published without it
    deployment.ledger.manifests.release(claim.row, "test", deployment.now)
    done = publish(deployment, deployment.row(row.id))
    deployment.wait(timedelta(minutes=15))
    assert sweep(deployment.services)["resumed"] == 1
    assert_taken_once(deployment, done)
    assert deployment.keys("control", "intents/") == []
