"""The sweep on manifests, intents and the stream lane; a killed sweep loses nothing, one bad item blocks no other."""

from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest

import router.sweep.handler as handler_module
from infra.functions import SPECS
from lake.errors import TerminalError, TransientError
from lake.layout import lake_key
from lake.ledger import State
from lake.manifest import Lane
from lake.time import iso_utc
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import OWNER_GRACE, read_intent, write_intent
from router.sweep.handler import TIME_PER_SWEEP, _repairs, sweep
from router.sweep.manifests import release_leases
from router.sweep.repair import Repair
from router.telemetry import Metric, metrics
from tests.load.request_counts import counted_requests
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment, recorded
from tests.unit.router.owning import orphan
from tests.unit.router.sweep.sweeping import changes, committed, list_pages, published, upload


def test_the_leases_of_a_live_run_cost_one_request(deployment: Deployment) -> None:
    # Given manifests that a live run holds, and others of a run that has ended
    deployment.glue.runs = {"batch-job": {"jr_1": "RUNNING", "jr_2": "FAILED"}}
    for name in "abc":
        deployment.claimed(deployment.queued(name), "jr_1")
    for name in "de":
        deployment.claimed(deployment.queued(name), "jr_2")
    lookups = Mock(wraps=deployment.glue.get_job_run)
    deployment.patch.setattr(deployment.glue, "get_job_run", lookups)
    # When
    repair = Repair(deployment.services, deployment.now + timedelta(minutes=1))
    with counted_requests() as requests:
        release_leases(repair)
    # Then the ended run is looked up once as well: its bill is read later
    assert sorted(call.kwargs["RunId"] for call in lookups.call_args_list) == ["jr_1", "jr_2"]
    assert (repair.counts["released"], requests["GetItem"]) == (2, 2)


def test_a_damaged_row_is_reported_and_holds_back_no_other(deployment: Deployment) -> None:
    # Given rows with a missing attribute, the oldest of each state, and complete rows
    for lane in Lane:
        damaged = [deployment.queued(name, lane=lane) for name in "abc"]
        deployment.claimed(damaged[0])
        committed(deployment, deployment.claimed(damaged[1]))
        for row in damaged:
            deployment.damage(row)
    deployment.wait(timedelta(seconds=1))
    held = [deployment.claimed(deployment.queued("d", lane=lane)) for lane in Lane]
    publishing = [committed(deployment, deployment.claimed(deployment.queued("e", lane=lane))) for lane in Lane]
    waiting = deployment.queued("f", lane=Lane.STREAM)
    deployment.wait(timedelta(minutes=61))
    # When
    with pytest.raises(TerminalError, match="is damaged"):
        sweep(deployment.services)
    # Then
    assert {deployment.row(row.id).state for row in held} == {State.QUEUED}
    assert {deployment.row(row.id).state for row in publishing} == {State.DONE}
    assert any(waiting.id in key for key in deployment.keys("control", "inbox/"))
    assert metrics.metric_set[Metric.STREAM_OLDEST_MINUTES]["Value"] == [61]


def test_a_lost_pointer_is_written_again_under_new_names_at_growing_intervals(deployment: Deployment) -> None:
    # Given a manifest of the stream without a pointer
    row = deployment.queued("a", lane=Lane.STREAM)
    minutes_of_new_pointers = []
    # When the sweep runs every quarter of an hour and no stream reads the inbox
    for minute in range(0, 601, 15):
        if sweep(deployment.services)["repointed"]:
            minutes_of_new_pointers.append(minute)
        deployment.wait(timedelta(minutes=15))
    # Then pointers are added at doubling intervals, and the streaming job is started
    assert minutes_of_new_pointers == [15, 30, 45, 60, 120, 240, 480]
    keys = deployment.keys("control", f"inbox/{row.id}-")
    assert len(keys) == len(set(keys)) == len(minutes_of_new_pointers)
    assert deployment.glue.runs["stream-job"]


def test_an_urgent_manifest_that_a_crashed_invocation_left_is_urgent_still(deployment: Deployment) -> None:
    # Given an intent with an urgent file and another file, and nothing else
    routed = [
        RoutedArrival(file_of(f"orders/{name}"), PARTITION, Lane.STREAM, "test", urgent=name == "urgent/a")
        for name in ("urgent/a", "b")
    ]
    write_intent(deployment.services, routed, deployment.now)
    deployment.wait(timedelta(minutes=15))
    # When it is resumed, and its pointers are then lost
    sweep(deployment.services)
    for key in deployment.keys("control", "inbox/"):
        deployment.raw_s3.delete_object(Bucket="control", Key=key)
    deployment.wait(timedelta(minutes=15))
    assert sweep(deployment.services)["repointed"] == 2
    # Then
    [row] = [row for row in deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED) if row.urgent]
    assert len(deployment.keys("control", f"inbox/urgent-{row.id}-")) == 1
    assert len(deployment.keys("control", "inbox/")) == 2


@pytest.mark.parametrize(("overnight", "hours"), [("cron(0 22 * * ? *)", 36), ("cron(0 22 ? * MON-FRI *)", 84)])
def test_a_manifest_without_progress_is_reported(deployment: Deployment, overnight: str, hours: int) -> None:
    # Given nights that are at most a day apart, or three
    deployment.configure(schedule={"overnight": overnight})
    deployment.queued("a")
    deployment.wait(timedelta(hours=hours - 1))
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(hours=2))
    assert measured(deployment, Metric.SWEEP_STALLED) == 1


def test_a_manifest_of_an_old_hour_is_reported_only_after_its_reprocess_has_waited(deployment: Deployment) -> None:
    # Given a reprocessed manifest of last month, and a younger one that waits
    old = published(deployment, deployment.queued("a"))
    deployment.wait(timedelta(days=30))
    deployment.ledger.manifests.force(old, deployment.now, "request")
    deployment.queued("b")
    # When sweeps run at once, and after the limit
    deployment.wait(timedelta(minutes=5))
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(hours=37))
    # Then the attempt in between has not hidden it
    deployment.ledger.manifests.release(deployment.claimed(deployment.row(old.id)), "test", deployment.now)
    assert changes(sweep(deployment.services)) == {"stalled": 2}


def test_a_manifest_that_went_to_the_batch_lane_gets_no_pointer(deployment: Deployment) -> None:
    # Given an index that still lists a reprocessed manifest under the stream lane, although it is in the batch lane
    hint = deployment.queued("a", lane=Lane.STREAM)
    deployment.ledger.manifests.force(published(deployment, hint), deployment.now, "request")
    listed = deployment.ledger.manifests.open

    def lagging(_: Any, lane: Lane, state: State, on_damage: Any) -> Any:
        return iter([hint]) if (lane, state) == (Lane.STREAM, State.QUEUED) else listed(lane, state, on_damage)

    deployment.patch.setattr(type(deployment.ledger.manifests), "open", lagging)
    deployment.wait(timedelta(hours=1))
    # When, Then: the row decides
    assert sweep(deployment.services)["repointed"] == 0
    assert deployment.glue.runs == {}


KEYS = [f"orders/{number}.json" for number in range(4)]


@pytest.mark.parametrize("number", range(1, len(KEYS) + 1))
def test_a_listing_of_the_input_continues_after_the_last_page_of_a_killed_sweep(
    deployment: Deployment, number: int
) -> None:
    # Given pages of one object, and a sweep that is killed at one page
    deployment.now = deployment.put(*KEYS) + timedelta(hours=7)
    markers: list[str] = []

    def kill(request: dict[str, Any]) -> None:
        if request["Prefix"] == "orders/":
            markers.append(request.get("KeyMarker", ""))
            if len(markers) == number:
                raise Crash

    list_pages(deployment, 1, kill)
    with pytest.raises(Crash):
        sweep(deployment.services)
    # When the next sweep runs
    sweep(deployment.services)
    # Then it begins with the lost page, and every object has one owner
    assert markers == ["", *KEYS[: number - 1], *["", *KEYS[:-1]][number - 1 :]]
    assert [file.key for file in deployment.waiting_files()] == KEYS


def test_no_repair_starves_when_all_use_their_time(deployment: Deployment) -> None:
    # Given repairs that use all the time they get and then fail
    begun, budgets = deployment.now, []

    def use_up(repair: Any, *_: Any) -> None:
        budgets.append(repair.stop_at - deployment.now)
        deployment.now = max(deployment.now, repair.stop_at)
        raise RuntimeError(f"repair {len(budgets)}")

    repairs = [("a repair", use_up)] * len(_repairs(deployment.services.settings, dry_run=False))
    deployment.patch.setattr(handler_module, "_repairs", lambda *_, **__: repairs)
    # When
    with pytest.raises(RuntimeError, match=r"repair 1$"):
        sweep(deployment.services)
    # Then each repair gets its share, and the last one still has time
    (spec,) = (spec for spec in SPECS if spec.name == "sweep")
    assert len(budgets) == len(repairs)
    assert min(budgets) >= TIME_PER_SWEEP / (len(repairs) + 1)
    assert deployment.now - begun <= TIME_PER_SWEEP
    assert deployment.now - begun + timedelta(minutes=5) <= timedelta(seconds=spec.timeout_seconds)


def test_an_unreadable_intent_is_reported_and_does_not_block_others(deployment: Deployment) -> None:
    # Given an intent that this version cannot read, and after it an orphan with an intent
    deployment.raw_s3.put_object(Bucket="control", Key="intents/20260101T000000a.json", Body=b'{"format": 99}')
    key = "clicks/a.json"
    orphan(deployment, key, PARTITION, Lane.BATCH)
    [row] = deployment.ledger.arrivals.versions("input", key)
    assert row.partition is not None
    write_intent(deployment.services, [RoutedArrival(row.file, row.partition, Lane.BATCH, "test")], deployment.now)
    deployment.wait(OWNER_GRACE + timedelta(minutes=1))

    # And sweeps that have time for one of them
    def read_slowly(*intent: Any) -> Any:
        deployment.wait(TIME_PER_SWEEP)
        return read_intent(*intent)

    deployment.patch.setattr("router.sweep.manifests.read_intent", read_slowly)
    # When some sweeps run
    errors = []
    for _ in range(30):
        try:
            sweep(deployment.services)
        except TransientError as error:
            errors.append(str(error))
    # Then the second intent is done, and the first is kept
    [row] = deployment.ledger.arrivals.versions("input", key)
    assert row.manifest != "crashed"
    assert deployment.keys("control", "intents/") == ["intents/20260101T000000a.json"]
    assert any("cannot read the intent" in error for error in errors)


def test_a_young_intent_is_left_to_the_invocation_that_wrote_it(deployment: Deployment) -> None:
    arrival = RoutedArrival(file_of("orders/a.json"), PARTITION, Lane.BATCH, "test")
    write_intent(deployment.services, [arrival], deployment.now)
    deployment.wait(OWNER_GRACE)
    assert sweep(deployment.services)["resumed"] == 0
    deployment.wait(timedelta(minutes=15))
    assert sweep(deployment.services)["resumed"] == 1


def measured(deployment: Deployment, metric: Metric) -> float:
    (value,) = recorded(lambda: sweep(deployment.services), metric)
    return value


def test_the_age_belongs_to_the_oldest_open_manifest_of_the_stream_lane(deployment: Deployment) -> None:
    assert measured(deployment, Metric.STREAM_OLDEST_MINUTES) == 0
    # Given a manifest that a run converts, younger manifests that wait, and an older one of the batch lane
    deployment.queued("batch.json", lane=Lane.BATCH)
    deployment.wait(timedelta(minutes=20))
    claim = deployment.claimed(deployment.queued("a.json", lane=Lane.STREAM))
    deployment.wait(timedelta(minutes=7))
    deployment.queued("b.json", lane=Lane.STREAM)
    deployment.wait(timedelta(minutes=2, seconds=30))
    assert measured(deployment, Metric.STREAM_OLDEST_MINUTES) == 9.5
    # When the run has ended, Then the next manifest is the oldest
    deployment.ledger.manifests.fail(claim, "because", deployment.now)
    assert measured(deployment, Metric.STREAM_OLDEST_MINUTES) == 2.5


@pytest.mark.parametrize(
    ("window_minutes", "heartbeat_minutes", "silent"),
    [
        (60, None, 1),
        (60, 1, 1),
        (60, 0.9, 0),
        (-1, None, 0),
        (-1, 300, 0),
        (None, None, 0),
    ],
)
def test_a_stream_without_a_heartbeat_is_silent_inside_its_window(
    deployment: Deployment, window_minutes: int | None, heartbeat_minutes: float | None, silent: int
) -> None:
    # Given a heartbeat that is valid for a minute, whatever the trigger
    deployment.configure(stream={"trigger_seconds": 60})
    stream = deployment.ledger.stream
    if window_minutes is not None:
        stream.open_window(iso_utc(deployment.now + timedelta(minutes=window_minutes)))
    if heartbeat_minutes is not None:
        stream.record_heartbeat("jr_1", deployment.now - timedelta(minutes=heartbeat_minutes))
    # Then
    assert measured(deployment, Metric.STREAM_SILENT) == silent


def test_a_dry_run_reports_what_the_next_sweep_does(deployment: Deployment) -> None:
    # Given: a missed file, a dead publisher, an expired lease, a lost pointer, an intent, a stray upload, old objects
    deployment.now = deployment.put("orders/missed.json")
    dead = committed(deployment, deployment.claimed(deployment.queued("a")))
    expired = deployment.claimed(deployment.queued("b"))
    waiting = deployment.queued("c", lane=Lane.STREAM)
    arrival = RoutedArrival(file_of("orders/d"), PARTITION, Lane.BATCH, "test")
    write_intent(deployment.services, [arrival], deployment.now)
    done = deployment.queued("e")
    published(deployment, done)
    stray = lake_key(PARTITION, done.id, 1, 9)
    upload(deployment, "lake", stray)
    deployment.ledger.manifests.force(deployment.row(done.id), deployment.now, "request")
    published(deployment, deployment.row(done.id))
    deployment.wait(timedelta(hours=7))
    deployment.faults.reset()
    # When
    counts = sweep(deployment.services, dry_run=True)
    # Then
    assert deployment.faults.writes == []
    items = counts.pop("items")
    for kind, name in (
        ("rolledForward", f"manifest {dead.id}"),
        ("released", f"manifest {expired.id}: the lease of run jr_1 has expired"),
        ("repointed", f"manifest {waiting.id}"),
        ("resumed", "s3://input/orders/d"),
        ("aborted", f"s3://lake/{stray}"),
        ("deleted", f"s3://lake/{lake_key(PARTITION, done.id, 1, 0)}"),
    ):
        assert f"{kind}: {name}" in items
    expected = set(changes(counts))
    assert expected == {"rolledForward", "released", "repointed", "resumed", "adopted", "aborted", "deleted"}
    # And the sweep does exactly that, and divides what it has adopted
    assert sweep(deployment.services) == {**counts, "divided": 1}
