"""Meters the streaming job: its driver counts its own workers, because no engine reports the usage of a streaming run
before the run ends."""

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError

from lake.engines import ENGINES
from lake.engines.description import Bill
from lake.errors import TransientError
from lake.ledger import CostRow, CostShare
from lake.ledger.costs import divide_cost
from lake.manifest import Lane
from lake.time import iso_utc
from transform.outcome import ConversionOutcome
from transform.task_model import ConversionContext

INTERVAL = timedelta(minutes=15)
"""Duration of a row of costs; the last row of a run may be shorter. A killed run loses up to this time."""


class StreamMeter:
    """Adds up live workers over time, and writes a row of costs for each ``INTERVAL``.

    It does not meter the time before the driver starts and after it ends. ``workers`` returns the number of live
    workers, including the driver.
    """

    def __init__(self, context: ConversionContext, workers: Callable[[], int]) -> None:
        self._context = context
        self._workers = workers
        self._lock = threading.Lock()
        self._begun = self._counted_until = context.clock()
        self._live = workers()
        self._worker_milliseconds = 0
        self._converted: list[CostShare] = []
        self._unwritten: list[CostRow] = []

    def add(self, outcomes: Iterable[ConversionOutcome]) -> None:
        """Add the conversions of a micro-batch, among which the cost of the interval is divided."""
        with self._lock:
            self._converted += [outcome.converted for outcome in outcomes if outcome.converted is not None]

    def count(self, *, ends: bool = False) -> None:
        """Count the time since the last call, for the workers that were live then. ``ends``: the run ends now."""
        now = self._context.clock()
        if now < self._counted_until:
            # The clock was set back. No interval has a negative time.
            self._close_interval()
            self._begun = self._counted_until = now
        self._worker_milliseconds += self._live * ((now - self._counted_until) // timedelta(milliseconds=1))
        self._counted_until = now
        self._live = 0 if ends else self._workers()
        if ends or now - self._begun >= INTERVAL:
            self._close_interval()

    def _close_interval(self) -> None:
        with self._lock:
            converted, self._converted = self._converted, []
        if converted or self._worker_milliseconds:
            self._unwritten.append(self._row(converted))
        self._begun, self._worker_milliseconds = self._counted_until, 0
        # A row that cannot be written is kept and written unchanged with the next one.
        try:
            while self._unwritten:
                self._context.ledger.costs.record(self._unwritten[0])
                self._unwritten.pop(0)
        except (BotoCoreError, ClientError, TransientError) as error:
            self._context.log(f"the cost of the stream was not recorded: {error}; the next interval retries it")

    def _row(self, converted: Sequence[CostShare]) -> CostRow:
        settings = self._context.settings
        begun, ended = self._begun, self._counted_until
        milliseconds = (ended - begun) // timedelta(milliseconds=1)
        engine, worker = ENGINES[settings.stream.engine], settings.stream.worker_type
        executors = engine.worker(worker).times(self._worker_milliseconds - milliseconds)
        used = engine.stream_driver(worker).times(milliseconds) + executors
        bill = Bill(
            # The id makes two writes one row: no two intervals of a run begin at the same time.
            f"{self._context.run}#{iso_utc(begun)}",
            None,
            engine.name,
            iso_utc(begun),
            iso_utc(ended),
            round((ended - begun).total_seconds()),
            dpu_milliseconds=round(used.dpu),
            vcpu_milliseconds=round(used.vcpu),
            gb_milliseconds=round(used.gb),
            state="",
        )
        cost = bill.priced(engine.prices(settings))
        shares = divide_cost(cost, converted, [share.task_milliseconds for share in converted])
        return CostRow.of_bill(bill, Lane.STREAM, cost, shares)
