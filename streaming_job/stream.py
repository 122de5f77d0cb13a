"""The queries over the inbox, one after the other: heartbeat, end between micro-batches, a new checkpoint each time.

Urgent pointers wait for no trigger and no other pointers: with each heartbeat the run looks for them itself.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lake.layout import OTHER_POINTERS, inbox, manifest_of_pointer
from lake.texts import format_count
from streaming_job.inbox import delete_pointers, has_open_manifests, pass_over, urgent_pointers
from streaming_job.meter import StreamMeter
from streaming_job.micro_batch import (
    InputSize,
    convert_manifests,
    convert_portion,
    input_sizes,
    parallel_conversions,
    portion_limit,
    portions,
    raise_unanswered,
    side_by_side_limit,
    size_of,
)
from transform.outcome import ALARM, HELD, ConversionOutcome
from transform.preflight import BlockedRunError
from transform.spark_job import failure_reason
from transform.task_model import ConversionContext, JobServices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POOL = "urgent"
"""Spark's scheduler pool of urgent tasks: they get each core that becomes free, until they have as many as the tasks of
the micro-batch."""
MAX_LOOK_SECONDS = 5.0
"""Maximum interval between two looks for urgent pointers, and between two heartbeats. A day of looks is 17,280 LIST
requests: 0.09 dollars."""
MAX_POINTER_AGE = "36500d"
"""A hundred years: Spark must not skip a pointer because it is older than the newest one."""
MAX_POINTERS_PER_TRIGGER = 500
"""Not derived from the maximum size of a manifest: a quiet dataset has many small ones between two triggers, and they
would wait. The input that is converted side by side is limited later (``StreamSettings.side_by_side_seconds``)."""
MAX_POINTERS_PER_CHECKPOINT = 5000
"""Spark's file source remembers every pointer that it has read, in memory and in its log, which each tenth micro-batch
writes anew as a whole: ten full micro-batches do it once. After this number a new query follows."""

STOP_PATIENCE_SECONDS = 30.0
"""How long a request to stop waits for the end of the micro-batch: shorter than a heartbeat is valid. The next one can
begin at once, before another look at the row."""
PATIENCE_SHARE = 0.1
"""Share of the latency goal after which the next micro-batch begins, if the current one leaves room. Not at once:
Glue's auto scaling goes by how long micro-batches take."""

MAX_LATELY = 16
"""Number of manifests that a run remembers as converted."""

MAX_SILENCE = timedelta(minutes=10)
"""Without the ledger a run converts nothing, and no other one, which may reach it, is started while this one lives."""

QUERY_PATIENCE = timedelta(seconds=30)
"""How long queries may fail one after another: shorter than a heartbeat is valid, and than another run takes to
start."""


@dataclass(slots=True, eq=False)
class OpenConversion:
    """A micro-batch, or a portion of urgent manifests."""

    begun: datetime
    pointers: dict[str, list[str]]
    """Keys by manifest."""
    size: InputSize
    """What has not ended; of a micro-batch without the files."""
    urgent: bool = False


class InboxStream:
    """Runs micro-batches until a stop is requested or the stream has been idle outside its window.

    One follows another as soon as the slowest files of the first one leave room for it: they do not stop the lane.
    Urgent manifests are converted in parallel, the oldest first. Each look finds their pointers again until they are
    deleted: no checkpoint is needed.
    """

    def __init__(self, context: ConversionContext) -> None:
        self._context = context
        self._working = threading.Lock()
        self._ending = False
        self._error: BaseException | None = None
        self._wake = threading.Event()
        """Set: the thread of the run has something to do before the next heartbeat is due."""
        self._read = 0
        self._full = False
        """The current query begins no other micro-batch, and another query follows."""
        self._deletes = True
        """Whether the pointers of the last micro-batch that had some could be deleted."""
        self._stopping = False
        """Micro-batches are waited for until they have ended, and what other runs hold is left to the next run."""
        self._open: list[OpenConversion] = []
        self._changed = threading.Condition()
        """Guards ``_open``; notified when some of it has ended."""
        self._limit, self._max_open = side_by_side_limit(context), parallel_conversions(context)
        """Limits of micro-batches, and of urgent portions."""
        self._threads = ThreadPoolExecutor(2 * self._max_open + 1, thread_name_prefix="conversion")
        self._look: Future[None] = Future()
        """The last look for urgent pointers, in a thread of its own: S3 can keep it waiting for minutes."""
        self._look.set_result(None)
        self._last_work = context.clock()
        self._failing_since: datetime | None = None
        """The first failure of a query, after which others were tried."""
        self._lately: tuple[str, ...] = ()
        """In a quiet lane the next manifest can be a denied one alone: these show that the input is not."""
        self._meter = StreamMeter(context, lambda: live_workers(context.spark))

    def run(self) -> None:
        """Return when the run should end; raises what a micro-batch raised.

        A query begins with an empty checkpoint on the disk of the driver, and no other query ever reads it: what was
        not converted still has its pointer, which the next query finds, and the ledger knows what was converted.
        """
        try:
            while self._run_query():
                self._context.log(f"a new query: the last one has read {format_count(self._read, 'pointer')}")
        except BaseException:
            # Reported before the conversions that have begun end: that can take minutes, and no file starts another run
            # while the heartbeat is valid.
            try:
                self._context.services.ledger.stream.end()
            except (BotoCoreError, ClientError) as error:
                self._context.log(
                    f"the end of the run was not reported: {error}; its last heartbeat is valid for a while"
                )
            raise
        finally:
            self._stopping = True
            self._threads.shutdown(wait=True)
            self._meter.count(ends=True)

    def _run_query(self) -> bool:
        with TemporaryDirectory(prefix="inbox-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
            self._read, self._full = 0, False
            query: StreamingQuery | None = None
            try:
                query = self._start(checkpoint)
                return self._watch(query)
            except BaseException as error:
                if self._may_follow(error):
                    return True
                # No micro-batch is waited for: the query could not be stopped before its end.
                self._end_with(error)
                raise
            finally:
                if query is not None:
                    query.stop()

    def _may_follow(self, error: BaseException) -> bool:
        """Whether another query follows a failure of Spark itself, after a pause.

        Spark's client of S3 does not list again when an answer ends before its first byte, or a name is not resolved.
        """
        # The end of a micro-batch would be waited for without a heartbeat.
        if self._error is not None or self._working.locked() or not isinstance(error, (Py4JError, PySparkException)):
            return False
        now = self._context.clock()
        if self._failing_since is None or now - self._failing_since > MAX_SILENCE:
            self._failing_since = now
        if now - self._failing_since > QUERY_PATIENCE:
            return False
        self._context.log(f"Spark has ended the query, and another one is tried: {failure_reason(str(error))}")
        self._wake.clear()
        self._wake.wait(MAX_LOOK_SECONDS)
        return True

    def _watch(self, query: StreamingQuery) -> bool:
        answered, woken = self._context.clock(), False
        while True:
            if self._look.done():
                self._look.result()
                self._look = self._threads.submit(self.look_for_urgent)
            elif woken:
                # The room that there is now is used as soon as it has ended.
                self._look.add_done_callback(lambda _: self._wake.set())
            woken = self._wake.wait(min(MAX_LOOK_SECONDS, self._context.services.settings.stream.trigger_seconds))
            self._wake.clear()
            if self._error is not None:
                raise self._error
            try:
                self._record_heartbeat()
                self._meter.count()
                if self._may_end():
                    return False
                answered = self._context.clock()
            except (BotoCoreError, ClientError) as error:
                if self._context.clock() - answered > MAX_SILENCE:
                    raise
                # Files would wait for minutes until another run has started.
                pass_over(self._context, error)
            if self._full:
                return True
            if not query.isActive:
                # Spark itself has failed, and this raises its error.
                query.awaitTermination()

    def _start(self, checkpoint: str) -> StreamingQuery:
        spark, stream = self._context.spark, self._context.services.settings.stream
        # A pointer that was deleted after it was listed is skipped: the ledger decides, the inbox is a hint.
        spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        # Each micro-batch lists its pointers anew, and finds nothing in Spark's cache of 250 MB, which keeps them all.
        spark.conf.set("spark.sql.hive.filesourcePartitionFileCacheSize", "0")
        pointers = (
            spark.readStream.format("text")
            .schema("value string")
            .option("maxFilesPerTrigger", MAX_POINTERS_PER_TRIGGER)
            .option("maxFileAge", MAX_POINTER_AGE)
            .option("pathGlobFilter", OTHER_POINTERS)
            .load(pattern_of(self._context.services))
            .select("_metadata.file_path")
        )
        return (
            pointers.writeStream.foreachBatch(self._run_micro_batch)
            .option("checkpointLocation", f"file:{checkpoint}")
            .trigger(processingTime=f"{stream.trigger_seconds} seconds")
            .start()
        )

    def _run_micro_batch(self, batch: DataFrame, number: int) -> None:
        """Return when the micro-batch has ended or the next one may begin in parallel; raises what ended the run."""
        with self._working:
            # The query has ended: the next one reads these pointers.
            if self._ending or self._full:
                raise InterruptedError("the query has ended before this micro-batch")
            if self._error is not None:
                raise self._error
            try:
                rows = batch.collect()
                self._context.log(f"micro-batch {number}: {format_count(len(rows), 'pointer')}")
                self._wait_for(self._begin([key_of_path(row[0]) for row in rows]))
            except BaseException as error:
                self._end_with(error)
            if self._error is not None:
                raise self._error
            # As long as pointers cannot be deleted, another query would only read them again.
            self._full = self._read >= MAX_POINTERS_PER_CHECKPOINT and self._deletes
            if self._full:
                self._wake.set()

    def look_for_urgent(self) -> None:
        """Begin portions of new urgent manifests, as many as there is room for; none after a fault that passes."""
        urgent = [item for item in self._open if item.urgent]
        if self._stopping or len(urgent) >= self._max_open:
            return
        try:
            pointers = urgent_pointers(self._context.services, {name for item in urgent for name in item.pointers})
            sizes = input_sizes(self._context, list(pointers))
        except (BotoCoreError, ClientError) as error:
            pass_over(self._context, error)
            return
        for portion in portions(sizes, portion_limit(self._limit)):
            size, keys = size_of(sizes, portion), {name: pointers[name] for name in portion}
            begun = OpenConversion(self._context.clock(), keys, size, urgent=True)
            urgent.append(begun)
            seconds, files = (sum(item.size[part] for item in urgent) for part in (0, 1))
            fits = seconds <= self._limit.core_seconds and files <= self._limit.files
            # A few slow files, which are small, do not keep the others waiting.
            if self._stopping or (len(urgent) > 1 and not (fits and len(urgent) <= self._max_open)):
                return
            with self._changed:
                self._open.append(begun)
            self._threads.submit(self._convert, begun)

    def _begin(self, keys: list[str]) -> OpenConversion:
        with self._changed:
            begun = OpenConversion(self._context.clock(), {}, InputSize(0, 0))
            for key in keys:
                manifest = manifest_of_pointer(key) or key
                other = next((item for item in self._open if manifest in item.pointers), begun)
                # Also another pointer to a manifest that is being converted, which would keep an idle run alive.
                other.pointers.setdefault(manifest, []).append(key)
                # It does not count: a query that has read no other ones would be followed without end.
                self._read += other is begun
            self._open.append(begun)
        self._threads.submit(self._convert, begun)
        return begun

    def _convert(self, begun: OpenConversion) -> None:
        # An id begins with the time at which its manifest was made.
        context, manifests, deleted = self._context, sorted(begun.pointers), True

        def is_stopping() -> bool:
            return self._stopping

        def set_open(open_seconds: float) -> None:
            with self._changed:
                begun.size = InputSize(open_seconds, 0)
                self._changed.notify_all()

        try:
            if begun.urgent:
                context.log(f"urgent: {format_count(len(manifests), 'manifest')}")
                outcomes = convert_portion(replace(context, pool=POOL), manifests, is_stopping, self._lately)
            else:
                outcomes = convert_manifests(
                    context, manifests, leaves_held=is_stopping, lately=self._lately, on_open=set_open
                )
            self._record_work(outcomes)
            raise_unanswered(outcomes)
            held = {outcome.manifest for outcome in outcomes if outcome.state == HELD}
            read = [key for manifest, keys in begun.pointers.items() if manifest not in held for key in keys]
            if read:
                deleted = delete_pointers(context, read)
                self._deletes = self._deletes if begun.urgent else deleted
        except BaseException as error:
            self._end_with(error)
        finally:
            with self._changed:
                self._open = [item for item in self._open if item is not begun]
                self._changed.notify_all()
            # There is room for other urgent ones. What could not be deleted would only be read again.
            if begun.urgent and deleted:
                self._wake.set()

    def _wait_for(self, begun: OpenConversion) -> None:
        """Return when the micro-batch has ended, or after a while if there is room for another one."""
        stream = self._context.services.settings.stream

        def has_ended() -> bool:
            return begun not in self._open or self._error is not None

        def leaves_room() -> bool:
            others = [item.size.core_seconds for item in self._open if not item.urgent]
            return len(others) < self._max_open and sum(others) < self._limit.core_seconds and not self._stopping

        with self._changed:
            if not self._changed.wait_for(has_ended, PATIENCE_SHARE * stream.latency_goal_seconds):
                self._changed.wait_for(lambda: has_ended() or leaves_room())

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
        self._lately = (*self._lately, *converted)[-MAX_LATELY:]
        # What had ended before is found by each look if its urgent pointer cannot be deleted.
        if any(outcome.converted is not None or not outcome.terminal for outcome in outcomes):
            self._last_work = self._context.clock()

    def _record_heartbeat(self) -> None:
        with self._changed:
            since = next((item.begun for item in self._open if not item.urgent), None)
        self._context.services.ledger.stream.record_heartbeat(self._context.run, self._context.clock(), since)

    def _may_end(self) -> bool:
        """Whether to end now; after True no micro-batch begins."""
        row = self._context.services.ledger.stream.get()
        self._stopping = row.stop_requested or self._error is not None
        now = self._context.clock()
        in_window = row.window_until is not None and datetime.fromisoformat(row.window_until) > now
        idle = now - self._last_work >= timedelta(minutes=self._context.services.settings.stream.idle_minutes)
        if not row.stop_requested and (in_window or not idle):
            return False
        if not self._working.acquire(timeout=STOP_PATIENCE_SECONDS if row.stop_requested else 0):
            return False
        try:
            # The look first: it may begin something before it ends.
            if not self._look.done() or self._look.exception() or self._error is not None or self._open:
                return False
            # First record the end, then look: a function that puts a pointer after the look sees no heartbeat and
            # starts another run.
            self._context.services.ledger.stream.end()
            if not row.stop_requested and has_open_manifests(self._context.services):
                self._last_work = now
                self._record_heartbeat()
                return False
            self._ending = True
        finally:
            self._working.release()
        self._context.log("stopped as requested" if row.stop_requested else "ended: idle outside the stream window")
        return True


def pattern_of(services: JobServices) -> str:
    """What Spark is to list: exactly the inbox of the job.

    A pattern, because for Spark a folder without objects does not exist. It names the folder and not its objects: of
    each object that matches a pattern, Spark would ask for its status in a task of its own.
    """
    return f"s3a://{services.resources.control_bucket}/{{{inbox(services.ledger.stream.shard).rstrip('/')}}}/"


def key_of_path(path: str) -> str:
    """The key of a pointer, from the path by which Spark has read it: an inbox is at the top of the bucket."""
    return "/".join(path.split("/")[-2:])


def live_workers(spark: SparkSession) -> int:
    """Workers of the run that are alive: the executors, and the driver, which has a worker of its own."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size())
