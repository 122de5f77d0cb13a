"""status: backlog by lane and dataset, failures, the stream, tonight, last night and open alarms."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cli.documents import StatusDocument
from cli.inspect.status import print_status_document, status_document
from lake.layout import sweep_key
from lake.ledger.collections import CollectionId, Part
from lake.manifest import Lane, ObjectVersion, Partition
from lake.texts import format_clock, format_dollars, format_duration
from lake.time import iso_utc
from router.sweep.missed import HOUR_FORMAT, LISTING, OLD_DAYS, InputSearch
from tests.unit.cli.conftest import Printed, valid_json
from tests.unit.cli.stack_world import NIGHT, FakeServices, execution, put_summary, stack_of
from tests.unit.lake.world import MORNING, World, done

OPTIONS = " --stage test"
Page = Callable[..., str]
BERLIN = ZoneInfo("Europe/Berlin")


def document_of(world: World, services: FakeServices | None = None, limit: int = 100) -> StatusDocument:
    document = status_document(stack_of(world, services or FakeServices()), limit, world.now)
    valid_json("status", document)
    return document


@pytest.fixture
def page(world: World, printed: Printed) -> Page:
    """The output of the command for a stack with these services."""
    return lambda services=None: printed(
        print_status_document, document_of(world, services), world.now, " --stage test"
    )


def test_an_idle_stack(page: Page) -> None:
    assert page().splitlines() == [
        "hybrid-router-dev, times in Europe/Berlin",
        "backlog    nothing waits",
        "failures   none",
        "listing    no sweep has searched for missed events yet",
        "stream     not running",
        "next night begins tonight 22:00; no forecast yet, one is made every hour: "
        "'hybrid-router plan --stage test' makes one now",
        "last night none in the last 90 days",
        "alarms     none open",
    ]


def test_the_age_of_the_listing_of_missed_events_is_shown(world: World, page: Page) -> None:
    # Given: a sweep that has listed all datasets up to the end of an hour
    hour = world.now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=4)
    until = hour + timedelta(hours=1)
    search = InputSearch(covered_until=hour.strftime(HOUR_FORMAT))
    old = InputSearch(covered_until=(hour - timedelta(days=1)).strftime(HOUR_FORMAT))
    for listing, position in ((LISTING, search), (OLD_DAYS, old)):
        world.raw_s3.put_object(Bucket="control", Key=sweep_key(listing), Body=json.dumps(asdict(position)).encode())
    # When
    document = document_of(world)
    # Then
    assert document.missed_events_until == iso_utc(until)
    assert document.missed_events_of_old_days_until == iso_utc(until - timedelta(days=1))
    words = r"up to today 07:00, 3 h .* ago; in folders of older days up to yesterday 07:00, 1 d .* ago\n"
    assert re.search(words, page())


def test_the_backlog_is_counted_by_lane_and_dataset(world: World, page: Page) -> None:
    # Given: two datasets in the batch lane, one with a manifest that was tried before, and a stream lane manifest
    ended = world.queued("e", partition=Partition("clicks", "2026-11-20", 9))
    world.ledger.manifests.fail(ended, "because", world.now)
    world.queued("a", "b")
    world.wait(timedelta(minutes=90))
    tried = world.claimed(world.queued("c", partition=Partition("events", "2026-11-20", 9)))
    assert world.ledger.manifests.release(tried, "worker lost", world.now)
    world.queued("d", lane=Lane.STREAM)
    # And an old manifest that started to wait again just now
    assert world.ledger.manifests.force(world.row(ended.id), world.now, "request")
    world.wait(timedelta(minutes=5))
    # When
    document = document_of(world)
    # Then
    found = {(row.lane, row.dataset): row for row in document.backlog}
    assert set(found) == {("batch", "clicks"), ("batch", "events"), ("batch", "orders"), ("stream", "orders")}
    assert found["batch", "clicks"].oldest == iso_utc(world.now - timedelta(minutes=5))
    assert (found["batch", "orders"].files, found["batch", "orders"].bytes) == (2, 200)
    assert (found["batch", "events"].blocked, found["batch", "orders"].blocked) == (1, 0)
    text = page()
    assert "200 B" in text
    assert "1 h 35 min" in text
    assert "stream     not running, 1 manifest (1 file, 100 B), the oldest 5 min old\n" in text
    assert "failures   1 manifest blocked: 'hybrid-router failures --stage test' shows why" in text


def test_the_largest_backlogs_are_on_the_page(world: World, page: Page) -> None:
    for number in range(22):
        files = [f"{number}-{file}" for file in range(1 if number < 2 else 2)]
        world.queued(*files, partition=Partition(f"d{number:02d}", "2026-11-20", 9))
    lines = page().splitlines()
    assert len(document_of(world).backlog) == 22
    shown = [line.split()[1] for line in lines if line.startswith("batch")]
    assert shown == [f"d{number:02d}" for number in range(2, 22)]
    assert "           the 2 smaller backlogs are left out: --json has them" in lines


def test_failures_and_ignored_files_are_counted(world: World) -> None:
    failed, unreadable = world.queued("a"), world.queued("b")
    world.ledger.manifests.fail(failed, "because", world.now)
    done(world, unreadable)
    ignored = ObjectVersion("input", "a", "e", 5, "2000-01-01T00:00:00.000+00:00")
    world.ledger.ignored.add("no rule", [ignored], world.now)
    document = document_of(world, FakeServices(dead_letters=3))
    assert (document.failed_manifests, document.manifests_with_unreadable_files) == (1, 1)
    assert (document.ignored_files, document.dead_letters) == (1, 3)
    # And a list that is longer than the limit is reported as incomplete
    world.ledger.manifests.fail(world.queued("c"), "because", world.now)
    assert document_of(world, FakeServices(), limit=2).complete
    assert not document_of(world, FakeServices(), limit=1).complete
    # And no list is read beyond the limit for the stream lane's shards
    for name in ("d", "e"):
        world.queued(name, lane=Lane.STREAM)
    assert [shard.manifests for shard in document_of(world, FakeServices(), limit=1).shards] == [1]


def test_collected_files_in_damaged_parts_are_counted_separately(world: World, page: Page) -> None:
    # Given a part whose document was found to be damaged
    part = Part("p1", "2026-11-20T09", world.now.isoformat(), 2, 10, "sha", ("orders",))
    assert world.ledger.collections.add(CollectionId.numbered(part.hour, 1), part)
    world.ledger.collections.set_apart(part.hour, part, world.now)
    # Then
    collected = "collected  4 files, 20 B since 2026-11-20T09 UTC, divided when their hour is over"
    line = "           of these, 2 files in damaged parts: 'hybrid-router failures --stage test' names them"
    assert page().splitlines()[1:4] == [collected, line, "failures   none"]


def test_the_newest_forecast_is_shown_until_its_night_begins(world: World, page: Page) -> None:
    put_summary(world, "plan-ahead")
    text = page()
    assert (
        "next night tonight 22:00 to tonight 23:10, $12.50 ($7.50 to $16.00), "
        "10 files of 4.5 GB in 4 runs on glue-flex; deadline tomorrow 06:00; as of today 10:00" in text
    )
    # Then it is not shown after that, nor after a change of the schedule, because no night begins at its start
    others = ("cron(0 23 * * ? *)", "2026-11-20T22:00:00.000+00:00"), ("rate(7 days)", None)
    for schedule, start in others:
        document = document_of(world, FakeServices(schedule=schedule))
        assert (document.next_night.start, document.next_night.forecast) == (start, None)
    shown = page(FakeServices(schedule="rate(7 days)"))
    assert "next night rate(7 days), which has no next start and so no forecast: " in shown
    world.wait(timedelta(hours=12))
    assert document_of(world).next_night.forecast is None


def test_last_night_is_neither_a_dry_run_nor_what_is_running(world: World, page: Page) -> None:
    # Given: executions, newest first: a running one, a dry run, and two nights
    names = ("now", "dry", "night-2", "night-1")
    services = FakeServices([execution(name, "RUNNING" if name == "now" else "SUCCEEDED") for name in names])
    verdict = {"outcome": "SUCCEEDED_WITH_QUARANTINE", "rows": 101, "rejects": 793, "failed_files": 1}
    for name in ("now", "night-1", "night-2"):
        world.ledger.executions.record(name, "plan", {"manifests": 1})
    world.ledger.executions.record("night-2", "verdict", verdict)
    # When
    text = page(services)
    # Then
    assert (
        "last night SUCCEEDED_WITH_QUARANTINE, yesterday 22:00 to yesterday 23:10, 101 rows, 793 quarantined lines, "
        "1 unreadable file; now is running now" in text
    )


@pytest.mark.parametrize(("seconds", "age"), [(4, "4 s"), (-0.126, "0 s")])
def test_the_stream_is_alive_by_its_run_and_its_heartbeat(world: World, page: Page, seconds: float, age: str) -> None:
    services = FakeServices(stream_runs=[{"Id": "jr_1", "JobRunState": "RUNNING"}])
    world.ledger.stream.open_window("2026-11-20T19:15:00.000+00:00")
    world.ledger.stream.record_heartbeat("jr_1", world.now - timedelta(seconds=seconds))
    text = page(services)
    assert f"stream     running (jr_1), heartbeat {age} ago, window until tonight 20:15" in text


def test_only_alarms_of_the_stacks_topic_are_open_and_none_without_a_state_is_called_quiet(
    world: World, page: Page
) -> None:
    alarm = {
        "AlarmName": "hybrid-router-dev-SweepStalled",
        "StateUpdatedTimestamp": NIGHT,
        "StateValue": "ALARM",
        "AlarmActions": ["alarm_topic"],
        "AlarmDescription": "Manifests are open for long.",
    }
    other = {**alarm, "AlarmName": "hybrid-router-dev-2-SweepStalled", "AlarmActions": ["other"]}
    ended = {**alarm, "AlarmName": "hybrid-router-dev-NoSweep", "StateValue": "OK"}
    unknown = {**alarm, "AlarmName": "hybrid-router-dev-Failed", "StateValue": "INSUFFICIENT_DATA"}
    text = page(FakeServices(alarms=[other, alarm, ended, unknown]))
    assert "alarms     1 open alarm, except 1 alarm never evaluated\n" in text
    assert "hybrid-router-dev-SweepStalled since yesterday 22:00: Manifests are open for long." in text


def test_a_duration_has_two_units_at_most_and_a_small_amount_keeps_its_digits() -> None:
    durations = {45: "45 s", 140: "2 min 20 s", 725: "12 min", 3660: "1 h 1 min", 90_000: "1 d 1 h"}
    assert {seconds: format_duration(seconds) for seconds in durations} == durations
    assert [format_dollars(amount) for amount in (0, 0.00012, 1234.5)] == ["$0.00", "$0.0001", "$1,234.50"]


def test_an_instant_has_its_date_on_another_day_and_its_offset_where_the_clock_shows_it_twice() -> None:
    texts = [format_clock((MORNING + timedelta(hours=hours)).isoformat(), BERLIN, MORNING) for hours in (-48, -12, 1)]
    assert texts == ["2026-11-18 10:30", "yesterday 22:30", "today 11:30"]
    texts = [format_clock((MORNING + timedelta(hours=hours)).isoformat(), BERLIN, MORNING) for hours in (12, 24, 48)]
    assert texts == ["tonight 22:30", "tomorrow 10:30", "2026-11-22 10:30"]
    now = datetime(2026, 10, 25, 12, tzinfo=UTC)
    texts = [format_clock(f"2026-10-25T{clock}+00:00", BERLIN, now) for clock in ("00:30", "01:00", "02:00")]
    assert texts == ["today 02:30+0200", "today 02:00+0100", "today 03:00"]
