"""Converts the manifests in the inbox by micro-batches; records heartbeats, ends between micro-batches.

Spark only triggers the micro-batches, which Glue's auto scaling measures: the run lists the inbox itself. Urgent
pointers do not wait for a trigger or for other pointers: the run looks for them with each heartbeat.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.cut import cut
from lake.settings.lanes import MAX_LOOK_SECONDS, MAX_POINTERS_PER_TRIGGER
from lake.speed import InputSize
from lake.texts import format_count
from streaming_job.inbox import delete_pointers, find_pointers, has_open_manifests, log_passing_fault
from streaming_job.meter import StreamMeter
from streaming_job.micro_batch import (
    PORTIONS,
    convert_portion,
    input_sizes,
    parallel_conversions,
    parallel_limit,
    portion_limit,
    raise_unanswered,
    read_pointers,
    size_of,
)
from transform.outcome import ALARM, HELD, ConversionOutcome
from transform.preflight import BlockedRunError
from transform.task_model import ConversionContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POOL = "urgent"
"""Spark's scheduler pool of urgent tasks: they get each core that becomes free, up to the number of cores that the
micro-batch has."""
MAX_URGENT_POINTERS = 1000
"""Maximum number of urgent pointers that one look reads, oldest first."""
PATIENCE_SHARE = 0.1
"""Share of the latency goal after which the next micro-batch may begin while the current one leaves room. It does not
begin at once, because Glue's auto scaling depends on the duration of micro-batches."""

MAX_RECENT = 16
"""Number of converted manifests that a run remembers."""

MAX_SILENCE = timedelta(minutes=10)
"""Maximum time without the ledger or the inbox: the run can convert nothing, and prevents the start of another run that
could."""

HELD_WAIT = timedelta(seconds=30)
"""Time after which a manifest that another run holds is read again: earlier reads could keep all others waiting."""


@dataclass(slots=True, eq=False)
class OpenConversion:
    """A portion of manifests, which are converted together."""

    begun: datetime
    pointers: dict[str, list[str]]
    """Keys by manifest."""
    size: InputSize
    urgent: bool = False


class InboxStream:
    """Runs micro-batches until a stop is requested or the stream has been idle outside its window.

    Portions of manifests are converted in parallel, the oldest first: urgent ones as soon as a look finds them, others
    by micro-batches, each of whose portions begins as soon as there is room. So the slowest files do not stop the lane,
    and cores which a portion no longer needs have work.
    """

    def __init__(self, context: ConversionContext) -> None:
        self._context = context
        self._error: BaseException | None = None
        self._wake = threading.Event()
        """Set if the thread of the run has something to do before the next heartbeat is due."""
        self._left: set[str] = set()
        """Keys of pointers that could not be deleted, which this run does not read again."""
        self._held: dict[str, datetime] = {}
        """Manifests that another run held, with the time."""
        self._stopping = False
        """Whether no further portion may begin."""
        self._open: list[OpenConversion] = []
        self._changed = threading.Condition()
        """Guards ``_open``; notified when an open conversion has ended, or none should begin."""
        self._limit, self._max_open = parallel_limit(context), parallel_conversions(context)
        """Limits of the parallel portions of micro-batches, and of the urgent ones."""
        self._threads = ThreadPoolExecutor(2 * self._max_open + 1, thread_name_prefix="conversion")
        self._look: Future[None] = Future()
        """The last look for urgent pointers. It has a thread of its own, because S3 can block it for minutes."""
        self._look.set_result(None)
        self._silent_since: datetime | None = None
        """Time of the first failure to read the inbox since it was last read."""
        self._last_work = context.clock()
        self._recent: tuple[str, ...] = ()
        """Recently converted manifests: they show that the input is readable if the next manifest is denied."""
        self._meter = StreamMeter(context, lambda: live_workers(context.spark))

    def run(self) -> None:
        """Run until the run should end; raises what a micro-batch raised.

        The checkpoint of its query, on the driver's disk, has nothing that another query needs: what was not converted
        still has its pointer, and the ledger knows what was converted.
        """
        try:
            with TemporaryDirectory(prefix="checkpoint-", ignore_cleanup_errors=True) as checkpoint:
                query = self._start(checkpoint)
                try:
                    self._watch(query)
                except BaseException as error:
                    # So that no micro-batch waits for room: the query could be stopped only after its end.
                    self._end_with(error)
                    raise
                finally:
                    query.stop()
        except BaseException:
            # The end is reported before open conversions end, which can take minutes in which no file would start
            # another run, because the heartbeat is valid.
            try:
                self._context.ledger.stream.end()
            except (BotoCoreError, ClientError) as error:
                self._context.log(
                    f"the end of the run was not reported: {error}; its last heartbeat is valid for a while"
                )
            raise
        finally:
            self._stopping = True
            self._threads.shutdown(wait=True)
            self._meter.count(ends=True)

    def _watch(self, query: StreamingQuery) -> None:
        """Return when the run may end."""
        answered, woken = self._context.clock(), False
        while True:
            if self._look.done():
                self._look.result()
                self._look = self._threads.submit(self.look_for_urgent)
            elif woken:
                # When the look ends, the new room is used at once.
                self._look.add_done_callback(lambda _: self._wake.set())
            woken = self._wake.wait(min(MAX_LOOK_SECONDS, self._context.settings.stream.trigger_seconds))
            self._wake.clear()
            if self._error is not None:
                raise self._error
            try:
                self._record_heartbeat()
                self._meter.count()
                if self._may_end():
                    return
                answered = self._context.clock()
            except (BotoCoreError, ClientError) as error:
                if self._context.clock() - answered > MAX_SILENCE:
                    raise
                # An end of the run would keep files waiting for minutes until another run has started.
                log_passing_fault(self._context, error)
            if not query.isActive:
                # Spark itself has failed; this raises its error.
                query.awaitTermination()

    def _start(self, checkpoint: str) -> StreamingQuery:
        seconds = self._context.settings.stream.trigger_seconds
        # A source that has a row at each trigger, so that each trigger begins a micro-batch; nothing reads the rows.
        ticks = self._context.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        return (
            ticks.writeStream.foreachBatch(self._run_micro_batch)
            .option("checkpointLocation", f"file:{checkpoint}")
            .trigger(processingTime=f"{seconds} seconds")
            .start()
        )

    def _run_micro_batch(self, _: DataFrame, number: int) -> None:
        """Begin portions. Return when these, or if none began the earlier ones, have ended, or after a while."""
        try:
            begun = self._begin_portions(f"micro-batch {number}", urgent=False)
        except BaseException as error:
            self._end_with(error)
            return
        settings = self._context.settings.stream
        patience = PATIENCE_SHARE * settings.latency_goal_seconds
        with self._changed:
            # Short micro-batches would make Glue remove workers that convert earlier portions.
            waited = {*begun} or {item for item in self._open if not item.urgent}
            seconds = patience if begun else min(patience, settings.trigger_seconds)
            self._changed.wait_for(lambda: self._stopping or not waited.intersection(self._open), seconds)

    def look_for_urgent(self) -> None:
        """Begin portions of new urgent manifests while there is room; begins none after a fault that can pass."""
        if sum(item.urgent for item in self._open) < self._max_open:
            self._begin_portions("urgent", urgent=True)

    def _begin_portions(self, name: str, *, urgent: bool) -> list[OpenConversion]:
        """Begin portions, and wait for room for those that are not urgent; what does not begin keeps its pointers."""
        begun: list[OpenConversion] = []
        if self._stopping:
            return begun
        try:
            pointers = self._find_pointers(urgent=urgent)
            sizes = input_sizes(self._context, list(pointers))
        except (BotoCoreError, ClientError) as error:
            now = self._context.clock()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > MAX_SILENCE:
                raise
            log_passing_fault(self._context, error)
            return begun
        self._silent_since = None
        for portion in cut(sizes, sizes.__getitem__, portion_limit(self._limit)):
            keys, size = {manifest: pointers[manifest] for manifest in portion}, size_of(sizes, portion)
            item = OpenConversion(self._context.clock(), keys, size, urgent)
            if not self._begin(item):
                break
            self._context.log(f"{name}: {format_count(len(portion), 'manifest')}")
            begun.append(item)
        return begun

    def _begin(self, item: OpenConversion) -> bool:
        """Begin a portion; one that is not urgent waits for room. False: it may not begin."""
        with self._changed:
            if not item.urgent:
                self._changed.wait_for(lambda: self._stopping or self._has_room_for(item))
            if self._stopping or not self._has_room_for(item):
                return False
            self._open.append(item)
        self._threads.submit(self._convert, item)
        return True

    def _has_room_for(self, item: OpenConversion) -> bool:
        """Whether a portion may begin: ``PORTIONS`` may always be open, and more if they are small."""
        sizes = [other.size for other in self._open if other.urgent == item.urgent] + [item.size]
        seconds, files = map(sum, zip(*sizes, strict=True))
        fits = seconds <= self._limit.core_seconds and files <= self._limit.files
        # Many may be open, so that a few slow files, which are small, do not keep the others waiting.
        return len(sizes) <= PORTIONS or (fits and len(sizes) <= self._max_open)

    def _find_pointers(self, *, urgent: bool) -> dict[str, list[str]]:
        """Keys of pointers to manifests that this run is not converting, and that no other run held recently."""
        with self._changed:
            now = self._context.clock()
            self._held = {name: at for name, at in self._held.items() if abs(now - at) < HELD_WAIT}
            # An urgent pointer can name a manifest that waits for its turn in a micro-batch.
            busy = {name for item in self._open if item.urgent or not urgent for name in item.pointers}
            busy.update(self._held)
        limit = MAX_URGENT_POINTERS if urgent else MAX_POINTERS_PER_TRIGGER
        return find_pointers(self._context, busy, self._left, urgent=urgent, limit=limit)

    def _convert(self, begun: OpenConversion) -> None:
        # An id begins with the creation time of its manifest.
        context, manifests, read = self._context, sorted(begun.pointers), list[str]()
        try:
            if begun.urgent:
                context = replace(context, pool=POOL)
            outcomes = convert_portion(context, manifests, self._recent)
            self._record_work(outcomes)
            raise_unanswered(outcomes)
            held = [outcome.manifest for outcome in outcomes if outcome.state == HELD]
            with self._changed:
                self._held |= dict.fromkeys(held, self._context.clock())
            read = read_pointers(begun.pointers, outcomes)
            self._left.update(delete_pointers(context, read))
        except BaseException as error:
            self._end_with(error)
        finally:
            with self._changed:
                self._open = [item for item in self._open if item is not begun]
                self._changed.notify_all()
            # There is room for other urgent manifests; later looks are early enough for those that are held.
            if begun.urgent and read:
                self._wake.set()

    def _end_with(self, error: BaseException) -> None:
        with self._changed:
            if self._error is None and isinstance(error, BlockedRunError):
                self._context.log(f"{ALARM} {error}")
            self._error = self._error or error
            self._stopping = True
            self._changed.notify_all()
        self._wake.set()

    def _record_work(self, outcomes: list[ConversionOutcome]) -> None:
        self._meter.add(outcomes)
        converted = [outcome.manifest for outcome in outcomes if outcome.converted is not None]
        self._recent = (*self._recent, *converted)[-MAX_RECENT:]
        # Manifests that had ended before do not count: a killed run may have left their pointers.
        if any(outcome.converted is not None or not outcome.terminal for outcome in outcomes):
            self._last_work = self._context.clock()

    def _record_heartbeat(self) -> None:
        with self._changed:
            since = next((item.begun for item in self._open if not item.urgent), None)
        self._context.ledger.stream.record_heartbeat(self._context.run, self._context.clock(), since)

    def _may_end(self) -> bool:
        """Whether to end now; after True no portion begins."""
        row, now = self._context.ledger.stream.get(), self._context.clock()
        in_window = row.window_until is not None and datetime.fromisoformat(row.window_until) > now
        idle = now - self._last_work >= timedelta(minutes=self._context.settings.stream.idle_minutes)
        with self._changed:
            # The look for urgent pointers is checked first, because it may begin conversions until it ends.
            is_quiet = self._look.done() and not self._look.exception() and self._error is None and not self._open
            ends = is_quiet and (row.stop_requested or (idle and not in_window))
            self._stopping = ends or row.stop_requested or self._error is not None
            self._changed.notify_all()
        if not ends:
            return False
        # First record the end, then check the inbox: a function that writes a pointer later sees no heartbeat and
        # starts another run.
        self._context.ledger.stream.end()
        if not row.stop_requested and has_open_manifests(self._context):
            self._last_work, self._stopping = now, self._error is not None
            self._record_heartbeat()
            return False
        self._context.log("stopped as requested" if row.stop_requested else "ended: idle outside the stream window")
        return True


def live_workers(spark: SparkSession) -> int:
    """Number of live workers of the run: the executors, and the driver, which has a worker of its own."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size())
