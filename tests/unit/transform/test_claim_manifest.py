"""A run claims a manifest, finishes what another run began, or leaves it; the leases of its claims are renewed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ReadTimeoutError

from lake.commit import SourceCount
from lake.documents import put_document
from lake.errors import LeaseLostError, NewerDocumentError
from lake.layout import lake_key, manifest_key
from lake.ledger import Claim, CostShare, ManifestRow, State
from lake.manifest import Lane, Partition
from lake.settings import BatchSettings, Settings
from tests.model import world as model
from tests.model.actors import conversion, fake_runtime
from tests.model.fake_spark import FakeSparkJob
from tests.unit.lake.world import PARTITION, World, row_in_state, upload
from transform import claim_manifest
from transform.claim_manifest import LeaseKeeper, claim_or_finish
from transform.convert import convert
from transform.outcome import HELD, UNKNOWN, WAITING, ConversionOutcome
from transform.task_model import ConversionContext, JobServices, Task, TaskFault, TaskResult

SETTINGS = Settings("test", batch=BatchSettings(max_attempts=2))


def context_of(world: World, run: str = "jr_1", *ended: str) -> ConversionContext:
    services = JobServices(world.s3, world.ledger, world.resources, SETTINGS, "eu-central-1")
    spark: Any = None
    return ConversionContext(spark, services, run, world.clock, lambda name: name in ended, lambda _: None)


def given(world: World, manifest: str, run: str = "jr_1", *ended: str) -> Claim | ConversionOutcome | None:
    return claim_or_finish(context_of(world, run, *ended), manifest)


def assert_claimed(world: World, manifest: str, claim: Claim | ConversionOutcome | None, attempt: int) -> None:
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
    return world.committed(world.claimed(world.queued("a.json"), "jr_0"))


@pytest.mark.parametrize("run", ["jr_1", "jr_2"])
def test_a_committed_manifest_is_published_and_counted_by_the_run_that_has_converted_it(world: World, run: str) -> None:
    # Given what the run jr_1 has committed
    claim = world.claimed(world.queued("a.json"))
    row = claim.row
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
    row = publishing(world)
    monkeypatch.setattr(claim_manifest, "roll_forward", Mock(side_effect=NewerDocumentError("deploy it again")))
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


def test_a_claim_that_got_no_answer_is_taken_up_once(world: World) -> None:
    # Given a second attempt, whose claim was applied, and no answer to it arrives
    row, context = after_attempts(world, world.queued("a.json"), 1), context_of(world)
    world.faults.reset()
    world.faults.lose_answer_of = 1
    with pytest.raises(ReadTimeoutError):
        claim_or_finish(context, row.id)
    # When, Then a process that shares the id of the run only is held
    held = ConversionOutcome(row.id, HELD, reason="run jr_1 is working on it")
    assert given(world, row.id) == held
    # And shortly before the lease ends the run goes on with the same attempt, without other manifests, in one call
    world.wait(timedelta(minutes=9))
    assert claim_or_finish(context, row.id, skip_tried=True) is None
    claim = claim_or_finish(context, row.id)
    assert isinstance(claim, Claim)
    assert (claim.owner, claim.row.attempt, world.row(row.id).attempt) == ("jr_1", 2, 2)
    # And the lease is a whole one, as the first renewal expects
    world.wait(timedelta(minutes=9))
    assert claim_or_finish(context, row.id) == held


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


def test_a_manifest_of_an_earlier_input_bucket_is_done_with_what_it_has_published(world: World) -> None:
    # Given a published manifest, QUEUED in its next generation, and settings that have another input bucket since
    row = world.published(world.queued("a"))
    assert world.ledger.manifests.force(row, world.now)
    world.resources = replace(world.resources, input_bucket="landing-zone-2")
    # When
    outcome = given(world, row.id)
    # Then
    after = world.row(row.id)
    assert (after.state, after.generation, after.published) == (State.DONE, 2, row.published)
    assert isinstance(outcome, ConversionOutcome)
    assert (outcome.state, outcome.reason) == (State.DONE, after.reason)
    assert "names the bucket 'input', which is not an input of this deployment" in str(after.reason)


NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


LEASE = timedelta(seconds=0.04)


@dataclass
class FakeManifests:
    lost: set[str] = field(default_factory=set)
    broken: bool = False
    renewed: list[str] = field(default_factory=list)
    tried: threading.Event = field(default_factory=threading.Event)

    def renew(self, claim: Claim, now: datetime, lease: timedelta) -> None:
        assert (now, lease) == (NOON, LEASE)
        self.renewed.append(claim.row.id)
        self.tried.set()
        if self.broken:
            raise ConnectionError("no route")
        if claim.row.id in self.lost:
            raise LeaseLostError("lost")


def keeper(manifests: FakeManifests, ids: str, log: Callable[[str], None] = print) -> LeaseKeeper:
    settings = SimpleNamespace(batch=SimpleNamespace(lease_seconds=LEASE.total_seconds()))
    services: Any = SimpleNamespace(ledger=SimpleNamespace(manifests=manifests), settings=settings)
    spark: Any = None
    found = LeaseKeeper(ConversionContext(spark, services, "run-1", lambda: NOON, lambda _: False, log))
    for name in ids:
        row = ManifestRow(name, State.RUNNING, Lane.BATCH, Partition("d", "2026-03-04", 12), "2026", 1, 1)
        found.add(Claim(row, "run-1"))
    return found


def test_renewals_go_on_in_the_background_and_end_with_the_work() -> None:
    manifests = FakeManifests()
    with keeper(manifests, "a"):
        for _ in range(3):
            assert manifests.tried.wait(10)
            manifests.tried.clear()
    count = len(manifests.renewed)
    assert not manifests.tried.wait(LEASE.total_seconds() * 2)
    assert len(manifests.renewed) == count


def test_a_manifest_that_is_lost_or_committed_is_no_longer_renewed() -> None:
    manifests = FakeManifests(lost={"a"})
    subject = keeper(manifests, "abc")
    subject.stop_renewing("c")
    subject.renew_all()
    subject.renew_all()
    assert manifests.renewed == ["a", "b", "b"]


def test_a_round_without_answers_is_one_line_of_the_log_and_says_what_happens_next() -> None:
    # Given a ledger that answers no renewal
    manifests, lines = FakeManifests(broken=True), list[str]()
    # When
    subject = keeper(manifests, "ab", lines.append)
    subject.renew_all()
    # Then both were tried, and none is lost
    assert manifests.renewed == ["a", "b"]
    assert lines == [
        "2 of 2 leases were not renewed (first: a: ConnectionError: no route); "
        "the next try is in 0.01 s, each lease ends 0.04 s after its last renewal"
    ]
    subject.renew_all()
    assert manifests.renewed == ["a", "b"] * 2


def test_a_manifest_that_is_tried_alone_is_claimed_at_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given tasks of more than a lease, a new manifest, and two that are tried alone, for the last time
    world = model.World(slow=True, settings=model.with_attempts(2))
    held, run = list[set[str]](), FakeSparkJob.run

    def record(job: FakeSparkJob, tasks: Sequence[Task]) -> list[TaskResult | TaskFault]:
        held.append({name for name, row in world.rows().items() if row["state"] == State.RUNNING})
        return run(job, tasks)

    monkeypatch.setattr(FakeSparkJob, "run", record)
    with fake_runtime(world):
        services = world.transform(None)
        tried = [world.queued(name) for name in "ab"]
        for manifest in tried:
            row = services.ledger.manifests.get(manifest)
            assert row is not None
            claim = services.ledger.manifests.claim(row, "run-0", world.now, model.LEASE)
            assert claim is not None
            services.ledger.manifests.release(claim.row, "it crashed", world.now)
        new = world.queued("c")
        # When
        outcomes = convert([*tried, new], conversion(world, services, "run-1"))
    # Then the end of the run would use up an attempt of one of them, and no lease has expired
    assert held == [{new}, *({manifest} for manifest in tried)]
    assert [outcome.state for outcome in outcomes] == [State.DONE] * 3
