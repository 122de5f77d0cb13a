"""A run claims a manifest, finishes the work of another run, or leaves it; the leases of its claims are renewed.

Before it claims anything, it must be able to read one file.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.commit import SourceCount
from lake.documents import put_document
from lake.errors import LeaseLostError, NewerDocumentError
from lake.layout import lake_key, manifest_key
from lake.ledger import CostShare, ManifestRow, State
from lake.manifest import Lane, ObjectVersion
from tests.model import world as model
from tests.model.actors import conversion, fake_runtime
from tests.model.fake_spark import FakeSparkJob
from tests.unit.lake.world import MORNING, PARTITION, World, row_in_state, upload
from tests.unit.transform.job import context_of
from transform import claim_manifest, preflight
from transform.claim_manifest import LeaseKeeper, claim_or_finish
from transform.convert import convert
from transform.give_up import EnvironmentFault
from transform.outcome import HELD, UNKNOWN, WAITING, ConversionOutcome
from transform.preflight import check_environment
from transform.source import DeniedFileError, UnreadableFileError
from transform.task_model import ConversionContext, Task, TaskResult


def given(world: World, manifest: str, run: str = "jr_1", *ended: str) -> ManifestRow | ConversionOutcome | None:
    return claim_or_finish(context_of(world, run, *ended), manifest)


def assert_claimed(world: World, manifest: str, claim: ManifestRow | ConversionOutcome | None, attempt: int) -> None:
    assert isinstance(claim, ManifestRow)
    assert claim == world.row(manifest)
    assert (claim.owner, claim.state, claim.attempt) == ("jr_1", State.RUNNING, attempt)


def after_attempts(world: World, row: ManifestRow, number: int) -> ManifestRow:
    """A QUEUED row after this number of attempts."""
    for _ in range(number):
        world.ledger.manifests.release(world.claimed(world.row(row.id), "jr_0"), "it crashed", world.now)
    return world.row(row.id)


def test_a_manifest_that_the_ledger_does_not_know_is_left(world: World) -> None:
    reason = "the ledger has no such manifest: it was skipped"
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
        # Pointers lead the stream lane to its manifests.
        (Lane.BATCH, (Lane.STREAM,), False),
        (Lane.STREAM, (Lane.BATCH,), False),
    ],
)
def test_a_run_of_the_batch_lane_continues_with_the_successors(
    world: World, lane: Lane, successors: tuple[Lane, ...], followed: bool
) -> None:
    row = world.queued("a.json", "b.json", lane=lane)
    manifests = [world.manifest(f"{number}.json", lane=each) for number, each in enumerate(successors)]
    world.superseded(row, *manifests)
    ids = tuple(manifest.id for manifest in manifests) if followed else ()
    assert given(world, row.id) == ConversionOutcome(row.id, State.SUPERSEDED, reason="because", successors=ids)


@pytest.mark.parametrize("run", ["jr_1", "jr_2"])
def test_a_committed_manifest_is_published_and_counted_by_the_run_that_has_converted_it(world: World, run: str) -> None:
    # Given a manifest that the run jr_1 has committed
    claim = world.claimed(world.queued("a.json"))
    row = claim
    item = upload(world.raw_s3, "lake", lake_key(PARTITION, row.id, 1, 0), b"rows", 3)
    source = SourceCount("s3://input/orders/a.json", "v1", 100, 4, 3, 0, {"not JSON": 1}, "not JSON", None)
    world.committed(claim, objects=(item,), sources=(source,))
    # When, Then
    share = CostShare("orders", 0, 100, 1, 1, 1, 1, 4)
    own = ConversionOutcome(row.id, State.DONE, 3, 1, converted=share)
    assert given(world, row.id, run) == (own if run == "jr_1" else ConversionOutcome(row.id, State.DONE))
    assert world.row(row.id).state == State.DONE


def test_a_manifest_that_a_newer_version_has_committed_waits_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = world.committed(world.claimed(world.queued("a.json"), "jr_0"))
    monkeypatch.setattr(claim_manifest, "roll_forward", Mock(side_effect=NewerDocumentError("deploy it again")))
    assert given(world, row.id) == ConversionOutcome(row.id, WAITING, reason="deploy it again")


@pytest.mark.parametrize(
    ("holder", "ended", "held"),
    [
        ("jr_0", (), True),
        ("jr_0", ("jr_0",), False),
        # Another call of this run, whatever Glue reports about it.
        ("jr_1", ("jr_1",), True),
    ],
)
def test_a_live_lease_is_kept_until_its_run_has_ended(
    world: World, holder: str, ended: tuple[str, ...], held: bool
) -> None:
    row = world.claimed(world.queued("a.json"), holder)
    found = given(world, row.id, "jr_1", *ended)
    if held:
        assert found == ConversionOutcome(row.id, HELD, reason=f"run {holder} is working on it")
        assert world.row(row.id) == row
    else:
        assert_claimed(world, row.id, found, attempt=2)
        assert world.row(row.id).reason == f"run {holder} ended during attempt 1 without reporting a result"


def with_unanswered_claim(world: World) -> tuple[ManifestRow, ConversionContext]:
    """A manifest after one attempt, and the run whose next claim of it was applied without an answer."""
    row, context = after_attempts(world, world.queued("a.json"), 1), context_of(world)
    world.faults.reset()
    world.faults.lose_answer_of = 1
    with pytest.raises(ReadTimeoutError):
        claim_or_finish(context, row.id)
    return row, context


def test_a_claim_without_an_answer_is_continued_once(world: World) -> None:
    # Given a second attempt, whose claim was applied without an answer
    row, context = with_unanswered_claim(world)
    # When, Then a process that only shares the id of the run is kept out
    held = ConversionOutcome(row.id, HELD, reason="run jr_1 is working on it")
    assert given(world, row.id) == held
    # And shortly before the lease ends the run continues the same attempt, without other manifests, in one call
    world.wait(timedelta(minutes=9))
    assert claim_or_finish(context, row.id, skip_tried=True) is None
    claim = claim_or_finish(context, row.id)
    assert isinstance(claim, ManifestRow)
    assert (claim.owner, claim.attempt, world.row(row.id).attempt) == ("jr_1", 2, 2)
    # And the lease has its full length, as the first renewal expects
    world.wait(timedelta(minutes=9))
    assert claim_or_finish(context, row.id) == held


def test_a_claim_without_an_answer_uses_up_no_attempt_if_its_lease_ends_during_the_round(world: World) -> None:
    # Given the last attempt, whose claim was applied without an answer
    row, context = with_unanswered_claim(world)
    # When the next round of the run begins only after the end of the lease
    world.wait(timedelta(minutes=11))
    claim = claim_or_finish(context, row.id)
    # Then the manifest still has its last attempt
    assert isinstance(claim, ManifestRow)
    assert (claim.attempt, claim.tries, world.row(row.id).state) == (3, 2, State.RUNNING)


def test_a_manifest_is_claimed_until_its_attempts_are_used_up(world: World) -> None:
    row = after_attempts(world, world.queued("a.json"), 1)
    claim = given(world, row.id)
    assert_claimed(world, row.id, claim, attempt=2)
    assert isinstance(claim, ManifestRow)
    assert claim.lease_until == world.row(row.id).lease_until
    world.ledger.manifests.release(claim, "it crashed again", world.now)
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


def test_a_manifest_of_an_earlier_input_bucket_is_done_with_what_it_has_published(world: World) -> None:
    # Given a published manifest, QUEUED in its next generation, and settings that have another input bucket since
    row = world.published(world.queued("a"))
    assert world.ledger.manifests.force(row, world.now, "request")
    world.resources = replace(world.resources, input_bucket="landing-zone-2")
    # When
    outcome = given(world, row.id)
    # Then
    after = world.row(row.id)
    assert (after.state, after.generation, after.published) == (State.DONE, 2, row.published)
    assert isinstance(outcome, ConversionOutcome)
    assert (outcome.state, outcome.reason) == (State.DONE, after.reason)
    assert "names the bucket 'input', which is not an input of this deployment" in str(after.reason)


def keeper(renew: Callable[[str], object], log: Callable[[str], None] = print) -> LeaseKeeper:
    """Keeps the leases of the manifests a, b and c, each of 0.04 seconds; ``renew`` replaces the ledger."""

    def renew_claim(claim: ManifestRow, now: datetime, lease: timedelta) -> None:
        assert (now, lease) == (MORNING, timedelta(seconds=0.04))
        renew(claim.id)

    manifests, settings = SimpleNamespace(renew=renew_claim), SimpleNamespace(batch=SimpleNamespace(lease_seconds=0.04))
    ledger = SimpleNamespace(manifests=manifests)
    context: Any = SimpleNamespace(ledger=ledger, settings=settings, clock=lambda: MORNING, log=log)
    found = LeaseKeeper(context)
    for name in "abc":
        found.add(ManifestRow(name, State.RUNNING, Lane.BATCH, PARTITION, "2026", 1, 1))
    return found


def test_renewals_continue_in_the_background_and_end_with_the_work() -> None:
    renewed = threading.Semaphore(0)
    with keeper(lambda _: renewed.release()):
        assert all(renewed.acquire(timeout=10) for _ in range(7))
    while renewed.acquire(blocking=False):
        continue
    assert not renewed.acquire(timeout=0.08)


def test_a_manifest_that_is_lost_or_committed_is_no_longer_renewed() -> None:
    renew = Mock(side_effect=[LeaseLostError("lost"), None, None])
    subject = keeper(renew)
    subject.stop_renewing("c")
    subject.renew_all()
    subject.renew_all()
    assert [call.args[0] for call in renew.call_args_list] == ["a", "b", "b"]


def test_a_round_without_answers_is_one_log_line_that_names_the_next_step() -> None:
    # Given a ledger that answers no renewal
    renew, lines = Mock(side_effect=ConnectionError("no route")), list[str]()
    # When
    subject = keeper(renew, lines.append)
    subject.renew_all()
    # Then each renewal was tried, and no lease is lost
    assert lines == [
        "3 of 3 leases were not renewed (first: a: ConnectionError: no route); "
        "the next try is in 0.01 s, each lease ends 0.04 s after its last renewal"
    ]
    subject.renew_all()
    assert [call.args[0] for call in renew.call_args_list] == ["a", "b", "c"] * 2


def test_a_manifest_that_is_tried_alone_is_claimed_at_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given tasks longer than a lease, a new manifest, and two that are tried alone, for the last time
    world = model.World(slow=True, settings=model.with_attempts(2))
    held, run = list[set[str]](), FakeSparkJob.run

    def record(job: FakeSparkJob, tasks: Sequence[Task]) -> list[TaskResult]:
        held.append({name for name, row in world.rows().items() if row["state"] == State.RUNNING})
        return run(job, tasks)

    monkeypatch.setattr(FakeSparkJob, "run", record)
    with fake_runtime(world):
        context = conversion(world, None, "run-1")
        tried = [world.queued(name) for name in "ab"]
        for manifest in tried:
            row = context.ledger.manifests.get(manifest)
            assert row is not None
            claim = context.ledger.manifests.claim(row, "run-0", world.now, model.LEASE)
            assert claim is not None
            context.ledger.manifests.release(claim, "it crashed", world.now)
        new = world.queued("c")
        # When
        outcomes = convert([*tried, new], context)
    # Then the end of the run would use up an attempt of only one of them, and no lease has expired
    assert held == [{new}, *({manifest} for manifest in tried)]
    assert [outcome.state for outcome in outcomes] == [State.DONE] * 3


def fetch(file: ObjectVersion, _start: int, _end: int) -> bytes:
    if file.key.endswith("denied"):
        raise DeniedFileError(file.key) from ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
    if file.key.endswith("gone"):
        raise UnreadableFileError(file.key)
    return b"{"


@pytest.mark.parametrize("manifests", [[["denied", "gone", "readable"]], [["denied"], ["gone"], ["readable"]]])
def test_a_file_that_can_be_read_lets_a_run_begin(
    world: World, monkeypatch: pytest.MonkeyPatch, manifests: list[list[str]]
) -> None:
    # Given one manifest, or others that are not in the sample
    monkeypatch.setattr(preflight, "MAX_SAMPLED", 0)
    monkeypatch.setattr(preflight, "Source", lambda *_: SimpleNamespace(fetch=fetch))
    # When, Then the run is not blocked
    check_environment(context_of(world), [world.queued(*names).id for names in manifests])


@pytest.mark.parametrize("own", [1, 400])
def test_many_denied_manifests_in_a_row_do_not_hold_up_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch, own: int
) -> None:
    # Given a denied dataset that has the first manifests of a run, or the oldest waiting ones
    denied, tried = EnvironmentFault("denied", "allow it", passing=False, denied=True), list[str]()

    def try_files(_context: object, _source: object, manifest: str, _number: int) -> tuple[bool, object]:
        tried.append(manifest)
        return (False, denied) if manifest < "200" else (True, None)

    monkeypatch.setattr(preflight, "_try_files", try_files)
    manifests = [f"{number:03}" for number in range(400)]
    # When, Then a file of another dataset is soon found
    check_environment(context_of(world), manifests[:own], manifests)
    assert len(tried) < 64
