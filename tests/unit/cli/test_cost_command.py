"""`hybrid-router cost`: sums by dataset, lane, engine and day, nights with their plans; and `plan`: the next night."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from cli.cost.cost import cost_command, plan_command, read_costs
from cli.deployed_stack import DeployedStack
from lake.errors import InvalidInputError
from lake.layout import PLAN_AHEAD_EXECUTION
from lake.ledger import CostRow, CostShare
from lake.manifest import Lane
from router.estimate.other_costs import Units, estimate
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.cli.stack_world import FORECAST, PLAN, FakeLambda, FakeServices, stack_with
from tests.unit.lake.world import World
from tests.unit.report.reporting import cost_row
from transform.source import CHUNK_BYTES

DAY = "2026-11-21"
ORDERS = CostShare("orders", 3_000_000, 6 * 10**9, 3, 1, 9, 2, 10**9)
CLICKS = CostShare("clicks", 1_000_000, 2 * 10**9, 1, 1, 3, 1, 10**9)
ROW = cost_row(
    started_at=f"{DAY}T00:00:00.000+00:00",
    ended_at=f"{DAY}T01:00:00.000+00:00",
    seconds=60,
    micro_dollars=4_000_000,
    shares=(ORDERS, CLICKS),
)
STREAM = cost_row(
    "jr_2",
    Lane.STREAM,
    micro_dollars=500_000,
    shares=(replace(ORDERS, micro_dollars=500_000, bytes=10**9),),
    ended_at="2026-11-22T01:00:00.000+00:00",
)
EARLY = replace(
    ROW, id="jr_0", micro_dollars=250_000, shares=(CostShare("", 250_000),), ended_at="2026-11-20T23:50:00.000+00:00"
)


@pytest.fixture
def stack(world: World) -> DeployedStack:
    for row in (ROW, STREAM, EARLY):
        world.ledger.costs.record(row)
    plan = {"planned_at": "2026-11-20T22:00:00.000+00:00", "micro_dollars": 4_100_000}
    world.ledger.executions.record("night", "plan", plan)
    return replace(stack_with(FakeLambda({})), ledger=world.ledger)


def test_the_intervals_of_a_streaming_job_are_one_job_run(world: World) -> None:
    for start in ("00:00", "00:15"):
        world.ledger.costs.record(replace(STREAM, id=f"jr_2#2026-11-22T{start}:00.000+00:00"))
    report = read_costs(world.ledger, date(2026, 11, 22), date(2026, 11, 22), "lane")
    assert (report.job_runs, report.total.dollars) == (1, 1.0)


def test_the_table_names_its_source_and_a_bill_that_is_awaited(stack: DeployedStack, printed: Printed) -> None:
    text = printed(cost_command, replace(stack, local=True), DAY, DAY, "dataset")
    for words in ("orders", "6 GB", "0.500000", "4.0000", "4.1000", "4.2500", "estimated in addition"):
        assert words in text
    assert "1 job run, from the clock of this machine" in text
    # Given a job run whose bill is not final
    stack.ledger.costs.await_bill("jr_late", datetime.fromisoformat(f"{DAY}T02:00:00Z"))
    # The job run may have ended on the day before
    for day, number in ((DAY, 1), ("2026-11-20", 1), ("2026-11-19", 0), ("2026-11-22", 0)):
        text = printed(cost_command, stack, day, day, "lane")
        assert text.count("; without 1 job run whose bill is not final yet") == number


def test_a_night_of_many_days_is_shown_as_a_whole(stack: DeployedStack) -> None:
    # Given a backfill with job runs on six days
    for day in range(10, 16):
        row = replace(ROW, id=f"jr-{day}", execution="backfill", ended_at=f"2026-11-{day}T12:00:00.000+00:00")
        stack.ledger.costs.record(row)
    times = {"plan": {"planned_at": "2026-11-10T08:00:00.000+00:00", "micro_dollars": 1}}
    for part, facts in (times | {"verdict": {"settled_at": "2026-11-15T14:00:00.000+00:00"}}).items():
        stack.ledger.executions.record("backfill", part, facts)
    # When one of the days is selected, with another night after it
    nights = read_costs(stack.ledger, date(2026, 11, 12), date(2026, 11, 22), "day").nights
    # Then
    found = {night.execution: (night.dollars, night.job_runs) for night in nights}
    assert found == {"backfill": (24.0, 6), "night": (4.25, 2)}


def test_the_rows_of_a_day_are_read_once_for_all_nights(stack: DeployedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given nights without a verdict, which may have job runs on many later days
    for day in range(11, 21):
        stack.ledger.costs.record(replace(ROW, id=f"jr-{day}", execution=str(day), ended_at=f"2026-11-{day}T12:00:00Z"))
        stack.ledger.executions.record(str(day), "plan", {"planned_at": f"2026-11-{day}T08:00:00Z"})
    asked = list[date]()
    of_days = stack.ledger.costs.of_days

    def count(first: date, last: date, lanes: Iterable[Lane] = tuple(Lane)) -> Iterator[CostRow]:
        asked.extend(first + timedelta(days=number) for number in range((last - first).days + 1))
        return of_days(first, last, lanes)

    monkeypatch.setattr(type(stack.ledger.costs), "of_days", lambda _, *args: count(*args))
    # When
    nights = read_costs(stack.ledger, date(2026, 11, 11), date(2026, 11, 19), "day").nights
    # Then each day is read once for the sums and once for the nights
    assert [night.job_runs for night in nights] == [1] * 9
    assert max(Counter(asked).values()) == 2


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("dataset", {"orders": 3.5, "clicks": 1.0, "(no manifest)": 0.25}),
        ("lane", {"batch": 4.25, "stream": 0.5}),
        ("engine", {"glue-flex": 4.25, "glue": 0.5}),
        ("day", {"2026-11-20": 0.25, "2026-11-21": 4.0, "2026-11-22": 0.5}),
    ],
)
def test_every_sum_has_all_of_the_money(
    stack: DeployedStack, answered: Answered, by: Any, groups: dict[str, float]
) -> None:
    body = answered(cost_command, stack, "2026-11-20", "2026-11-22", by)
    assert [(group["name"], group["dollars"]) for group in body["groups"]] == [*groups.items()]
    assert (body["total"]["dollars"], body["total"]["jobRuns"]) == (4.75, 3)
    assert body["total"]["dollarsPerGb"] == pytest.approx(4.75 / 9)
    assert body["nights"] == [{"execution": "night", "plannedDollars": 4.1, "dollars": 4.25, "jobRuns": 2}]


def test_a_stream_with_many_datasets_needs_the_memory_of_one_interval(
    stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given intervals of the streaming job with a thousand datasets each, which take 120 kB or more, and a night
    def of_days(_: object, first: date, last: date, lanes: Iterable[Lane] = tuple(Lane)) -> Iterator[CostRow]:
        begin = f"{first}T00:00:00Z"
        for number in range(20 if Lane.STREAM in lanes else 0):
            shares = tuple(CostShare(f"d{name}", 1 + number, 1000 + number) for name in range(1000))
            yield replace(STREAM, id=f"jr_2#{number}", started_at=begin, ended_at=f"{first}T01:00:00Z", shares=shares)
        yield replace(ROW, id=f"jr-{last}", started_at=begin, ended_at=f"{last}T02:00:00Z")

    monkeypatch.setattr(type(stack.ledger.costs), "of_days", of_days)
    # When
    tracemalloc.start()
    report = read_costs(stack.ledger, date(2026, 11, 20), date(2026, 11, 20), "lane")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Then
    assert report.total.files == 4
    assert [night.job_runs for night in report.nights] == [1]
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        ("yesterday", DAY, "--from 'yesterday' is not a valid day"),
        (DAY, "2026-11-32", "--to '2026-11-32' is not a valid day"),
        # A person who passes a week does not mean its Monday.
        ("2026-W47", "2026-W47", "--from '2026-W47' is not a valid day"),
        (DAY, "2026-11-20", "is later than"),
        ("2020-01-01", DAY, "more than 366 days"),
    ],
)
def test_days_that_are_not_valid(stack: DeployedStack, first: str, last: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        cost_command(stack, first, last, "day")


def test_the_estimate_is_of_counted_units() -> None:
    # Given 4 files of 8 GB in 2 manifests, written to 3 objects
    units = Units()
    found = estimate([ROW])
    # Then
    reads = 1 + 2 * units.s3_reads_of_manifest + 3 * units.s3_reads_of_object + 4 + 8 * 10**9 // CHUNK_BYTES
    writes = 2 * units.s3_writes_of_manifest + 3 * units.s3_writes_of_object + units.s3_writes_of_invocation
    lists = 4 * 0.016
    assert found.requests == pytest.approx(reads * 0.0004e-3 + (writes + lists) * 0.005e-3 + 4 * 1.2 * 0.4e-6 + 2e-6)
    assert found.ledger == pytest.approx((4 + 2 * (21 + 2) + 7) * 0.625e-6 + (2 * (11 + 62) + 3 + 4 * 8) * 0.125e-6)
    assert found.total == pytest.approx(found.requests + found.ledger + found.functions)
    assert found.storage_per_month == pytest.approx((2e9 * 0.023 + 4 * 550 * 0.45) / 2**30)
    # And an hour of the streaming job lists its inbox every 5 seconds in two ways, and each manifest has a pointer
    stream = estimate([replace(ROW, lane=Lane.STREAM, seconds=3600)])
    assert stream.requests - found.requests == pytest.approx(2 * 720 * 0.005e-3 + 2 * 0.005e-3)
    # And no sweep checks the manifests that wait for the night
    assert found.ledger - stream.ledger == pytest.approx(2 * (2 * 0.625e-6 + 62 * 0.125e-6))
    assert estimate([]).total == 0


OPTION = {"worker_type": "G.1X", "workers": 10, "concurrency": 4, "runs": 4, "seconds": 3660, "dollars": 12.5}
DATASET = {"dataset": "orders", "files": 10, "bytes": 4_500_000_000, "coreSeconds": 112.5, "speedIs": "assumed"}


def answer(**changes: Any) -> dict[str, Any]:
    """An answer of ``plan``; ``changes`` to members of the forecast are applied there."""
    forecast = {
        **FORECAST,
        "start": "2020-11-20T22:00:00.000+00:00",
        "end": "2020-11-20T23:01:00.000+00:00",
        "deadline": "2020-11-21T06:00:00.000+00:00",
        "options": [{**OPTION, "engine": "glue-flex"}, {**OPTION, "engine": "glue", "dollars": 13.5}],
        **{name: changes.pop(name) for name in FORECAST.keys() & changes},
    }
    return {
        **PLAN,
        "engines": ["glue-flex"],
        "leftFrom": "",
        "quotas": "quota.* of the settings",
        "prices": "a price list, us-east-1, 2026-09-24",
        "datasets": [DATASET],
        "forecast": forecast,
        **changes,
    }


Planned = Callable[..., str]


@pytest.fixture
def planned(printed: Printed) -> Planned:
    """What the command prints of this answer."""
    return lambda body, code: printed(
        plan_command, replace(stack_with(FakeLambda(body)), scheduler=FakeServices()), code=code
    )


def test_a_plan_that_fits(planned: Planned) -> None:
    text = planned(answer(), code=0)
    assert "backlog: 10 files, 4.5 GB, 2 manifests; quotas: quota.* of the settings" in text
    assert "4 runs of 10 workers on glue-flex, 4 at a time: 2020-11-20 23:00 to 2020-11-21 00:01, $12.50" in text
    assert "the deadline is 2020-11-21 07:00; times in Europe/Berlin\n" in text
    assert "from 40 minutes, $7.50 to 90 minutes, $16.00: a speed is assumed" in text
    assert "requests, ledger and functions: $0.0034; its output: $21.00 for each month of storage" in text
    assert "prices: a price list, us-east-1, 2026-09-24\n" in text
    assert [word for word in ("40 MB/s", "assumed", "planned", "not allowed") if word not in text] == []


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (answer(late_minutes=0.3, fits=False), 1, "TOO LATE by 18 s: the deadline is 2020-11-21 07:00;"),
        (answer(fits=False), 0, "with less than a tenth of the time to spare"),
        (answer(runs=0, datasets=[]), 0, "nothing to convert\n"),
        # An answer names only the largest datasets.
        (answer(files=2010), 0, "... and 2,000 files of smaller datasets\n"),
        (answer(leftFrom="2020-11-20T19:00:00.000+00:00"), 0, "manifests from 2020-11-20 20:00 on"),
    ],
)
def test_what_a_person_has_to_know(planned: Planned, body: dict[str, Any], code: int, words: str) -> None:
    assert words in planned(body, code=code)


def test_json_is_the_answer_and_the_request_is_a_dry_run(answered: Answered) -> None:
    functions = FakeLambda(answer())
    assert answered(plan_command, stack_with(functions), "orders", code=0) == answer()
    ((name, event),) = functions.requests
    assert (name, event["dataset"], event["dryRun"]) == ("plan", "orders", True)
    assert event["execution"].startswith("dry-run-")
    assert "engine" not in event


def test_a_plan_of_the_whole_backlog_is_the_forecast_that_status_shows() -> None:
    functions = FakeLambda(answer())
    plan_command(stack_with(functions))
    assert functions.requests == [("plan", {"execution": PLAN_AHEAD_EXECUTION, "dryRun": True})]
