"""The streaming job's own meter: live workers over time, in rows whose sum is the run."""

from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.ledger import CostRow, CostShare, State
from streaming_job.meter import INTERVAL, StreamMeter
from tests.unit.lake.world import World
from tests.unit.streaming_job.conftest import context_of
from transform.outcome import ConversionOutcome

WORKER_HOUR = 616_000
"""Millionths of a dollar for a G.2X, which has 2 DPU, at $0.308."""


@dataclass
class Stream:
    """A streaming run with a number of workers."""

    world: World
    settings: dict[str, Any] = field(default_factory=lambda: {"stream": {"worker_type": "G.2X"}})
    workers: int = 2
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        context = replace(context_of(self.world, **self.settings), log=self.lines.append)
        self.meter = StreamMeter(context, lambda: self.workers)

    def passes(self, **time: float) -> None:
        self.world.wait(timedelta(**time))
        self.meter.count()

    def rows(self) -> list[CostRow]:
        return list(self.world.ledger.costs.of_days(date(2026, 11, 20), date(2026, 11, 21)))


@pytest.fixture
def stream(world: World) -> Stream:
    return Stream(world)


def done(dataset: str, milliseconds: int, size: int = 100) -> ConversionOutcome:
    return ConversionOutcome("m", State.DONE, converted=CostShare(dataset, 0, size, 2, 1, milliseconds, 3, 50))


def test_a_quiet_stream_costs_the_time_of_its_workers(stream: Stream) -> None:
    # When a run waits for an hour and five minutes, with a heartbeat every minute
    for _ in range(65):
        stream.passes(minutes=1)
    stream.meter.count(ends=True)
    # Then each interval is a row, and their sum is the price of two workers for this time
    rows = stream.rows()
    assert [row.seconds for row in rows] == [900, 900, 900, 900, 300]
    assert sum(row.micro_dollars for row in rows) == pytest.approx(2 * WORKER_HOUR * 65 / 60, abs=len(rows))
    assert [(share.dataset, share.bytes) for row in rows for share in row.shares] == [("", 0)] * 5
    assert {(row.lane, row.engine, row.execution) for row in rows} == {("stream", "glue", None)}


def test_on_emr_serverless_the_vcpus_and_the_memory_of_driver_and_executors_are_metered(world: World) -> None:
    # Given a driver of 2 vCPU and 8 GB alone for 10 minutes, then with 3 executors of 4 vCPU and 16 GB for 5
    stream = Stream(world, {"stream": {"engine": "emr-serverless"}}, workers=1)
    stream.passes(minutes=9)
    stream.workers = 4
    stream.passes(minutes=1)
    stream.passes(minutes=5)
    (row,) = stream.rows()
    # Then
    assert (row.engine, row.dpu_milliseconds) == ("emr-serverless", 0)
    assert row.vcpu_milliseconds == 60_000 * (2 * 15 + 4 * 3 * 5)
    assert row.gb_milliseconds == 60_000 * (8 * 15 + 16 * 3 * 5)
    assert row.micro_dollars == pytest.approx((1.5 * 0.052624 + 6 * 0.0057785) * 1_000_000, abs=1)


def test_an_interval_is_divided_among_what_it_has_converted(stream: Stream) -> None:
    stream.meter.add([done("orders", 300), done("clicks", 100), ConversionOutcome("h", "HELD")])
    stream.meter.add([done("orders", 100)])
    stream.passes(seconds=INTERVAL.total_seconds())
    # Then by the time of the tasks
    (row,) = stream.rows()
    assert {share.dataset: share.micro_dollars for share in row.shares} == {
        "orders": WORKER_HOUR * 2 / 4 * 4 / 5,
        "clicks": WORKER_HOUR * 2 / 4 / 5,
    }
    orders = next(share for share in row.shares if share.dataset == "orders")
    assert (orders.bytes, orders.files, orders.manifests, orders.objects, orders.written_bytes) == (200, 4, 2, 6, 100)
    # And the next interval contains none of it
    stream.passes(seconds=INTERVAL.total_seconds())
    assert stream.rows()[1].shares[0].dataset == ""


def test_setting_the_clock_back_removes_no_cost(stream: Stream) -> None:
    # Given a run of three minutes / When the clock is set back by ten, and the run continues for fifteen
    stream.passes(minutes=3)
    stream.passes(minutes=-10)
    stream.passes(minutes=15)
    # Then each interval has its own row
    assert [row.seconds for row in stream.rows()] == [900, 180]


def test_a_row_that_could_not_be_written_is_written_with_the_next_one(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a ledger that does not answer for a while
    def refuse(*_: object) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems")

    with monkeypatch.context() as patch:
        patch.setattr("lake.ledger.costs.Costs.record", refuse)
        stream.passes(minutes=15)
    assert stream.rows() == []
    assert "the cost of the stream was not recorded" in stream.lines[0]
    # When it answers again, Then nothing is missing
    stream.passes(minutes=15)
    assert [row.seconds for row in stream.rows()] == [900, 900]
