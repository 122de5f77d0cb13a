"""Runs queries over the inbox in sequence, each with a new checkpoint; records heartbeats, ends between micro-batches.

Urgent pointers do not wait for a trigger or for other pointers: the run looks for them with each heartbeat.
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

from lake.cut import cut
from lake.layout import OTHER_POINTERS, inbox, manifest_of_pointer
from lake.settings.lanes import MAX_LOOK_SECONDS, MAX_POINTERS_PER_TRIGGER
from lake.speed import InputSize
from lake.texts import format_count
from streaming_job.inbox import delete_pointers, has_open_manifests, log_passing_fault, urgent_pointers
from streaming_job.meter import StreamMeter
from streaming_job.micro_batch import (
    convert_manifests,
    convert_portion,
    input_sizes,
    parallel_conversions,
    parallel_limit,
    portion_limit,
    raise_unanswered,
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
"""Spark's scheduler pool of urgent tasks: they get each core that becomes free, up to the number of cores that the
micro-batch has."""
MAX_POINTER_AGE = "36500d"
"""A hundred years: Spark must not skip a pointer because it is older than the newest one."""
MAX_POINTERS_PER_CHECKPOINT = 5000
"""Number of pointers after which a new query begins. Spark's file source keeps all pointers that it read, in memory and
in its log. Each tenth micro-batch rewrites the whole log: with this number, once for ten full micro-batches."""

STOP_TIMEOUT_SECONDS = 30.0
"""Wait of a stop request for the end of the micro-batch; shorter than a heartbeat is valid. The next micro-batch could
begin at once, before the row is read again."""
PATIENCE_SHARE = 0.1
"""Share of the latency goal after which the next micro-batch may begin while the current one leaves room. It does not
begin at once, because Glue's auto scaling depends on the duration of micro-batches."""

MAX_RECENT = 16
"""Number of converted manifests that a run remembers."""

MAX_SILENCE = timedelta(minutes=10)
"""Maximum time without the ledger: the run can convert nothing, and prevents the start of another run that could."""

QUERY_RETRY_TIME = timedelta(seconds=30)
"""Time for which queries may fail in succession: shorter than a heartbeat is valid, and than the start of another
run."""


@dataclass(slots=True, eq=False)
class OpenConversion:
    """A micro-batch, or a portion of urgent manifests."""

    begun: datetime
    pointers: dict[str, list[str]]
    """Keys by manifest."""
    size: InputSize
    """The unfinished work; without the number of files for a micro-batch."""
    urgent: bool = False


class InboxStream:
    """Runs micro-batches until a stop is requested or the stream has been idle outside its window.

    The next micro-batch begins as soon as the slowest files of the current one leave room, so that they do not stop the
    lane. Urgent manifests are converted in parallel, oldest first. Their pointers need no checkpoint, because each look
    finds them again until they are deleted.
    """

    def __init__(self, context: ConversionContext) -> None:
        self._context = context
        self._working = threading.Lock()
        self._ending = False
        self._error: BaseException | None = None
        self._wake = threading.Event()
        """Set if the thread of the run has something to do before the next heartbeat is due."""
        self._read = 0
        self._full = False
        """Whether the current query begins no further micro-batch, so that another query must follow."""
        self._deletes = True
        """Whether the pointers of the last micro-batch that had any could be deleted."""
        self._stopping = False
        """Whether to wait for the end of each micro-batch, and to leave what other runs hold to the next run."""
        self._open: list[OpenConversion] = []
        self._changed = threading.Condition()
        """Guards ``_open``; notified when an open conversion has ended or shrunk."""
        self._limit, self._max_open = parallel_limit(context), parallel_conversions(context)
        """Limits of parallel micro-batches, and of parallel urgent portions."""
        self._threads = ThreadPoolExecutor(2 * self._max_open + 1, thread_name_prefix="conversion")
        self._look: Future[None] = Future()
        """The last look for urgent pointers. It has a thread of its own, because S3 can block it for minutes."""
        self._look.set_result(None)
        self._last_work = context.clock()
        self._failing_since: datetime | None = None
        """Time of the first query failure in a series of failures."""
        self._recent: tuple[str, ...] = ()
        """Recently converted manifests: they show that the input is readable if the next manifest is denied."""
        self._meter = StreamMeter(context, lambda: live_workers(context.spark))

    def run(self) -> None:
        """Run until the run should end; raises what a micro-batch raised.

        A query begins with an empty checkpoint on the driver's disk, which no other query reads. Nothing is lost: what
        was not converted still has its pointer, which the next query finds, and the ledger knows what was converted.
        """
        try:
            while self._run_query():
                self._context.log(f"a new query: the last one has read {format_count(self._read, 'pointer')}")
        except BaseException:
            # The end is reported before open conversions end, which can take minutes in which no file would start
            # another run, because the heartbeat is valid.
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
                if self._may_retry(error):
                    return True
                # So that no micro-batch waits for room: the query could be stopped only after its end.
                self._end_with(error)
                raise
            finally:
                if query is not None:
                    query.stop()

    def _may_retry(self, error: BaseException) -> bool:
        """Whether another query follows a failure of Spark itself, after a pause.

        Spark's S3 client does not repeat a listing if the answer ends before its first byte, or a name is not resolved.
        """
        # Stopping the query waits for an open micro-batch, and no heartbeat would be recorded meanwhile.
        if self._error is not None or self._working.locked() or not isinstance(error, (Py4JError, PySparkException)):
            return False
        now = self._context.clock()
        if self._failing_since is None or now - self._failing_since > MAX_SILENCE:
            self._failing_since = now
        if now - self._failing_since > QUERY_RETRY_TIME:
            return False
        self._context.log(f"Spark has ended the query, and a new one starts: {failure_reason(str(error))}")
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
                # When the look ends, the new room is used at once.
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
                # An end of the run would keep files waiting for minutes until another run has started.
                log_passing_fault(self._context, error)
            if self._full:
                return True
            if not query.isActive:
                # Spark itself has failed; this raises its error.
                query.awaitTermination()

    def _start(self, checkpoint: str) -> StreamingQuery:
        spark, stream = self._context.spark, self._context.services.settings.stream
        # A pointer that was deleted after the listing is skipped: the inbox is a hint, and the ledger decides.
        spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        # No micro-batch finds its pointers in Spark's cache, which would keep 250 MB of them.
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
        """Return when the micro-batch has ended or the next one may begin in parallel. Raises the error of the run."""
        with self._working:
            # The query has ended, and the next one reads these pointers.
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
            # If pointers cannot be deleted, another query would only read them again.
            self._full = self._read >= MAX_POINTERS_PER_CHECKPOINT and self._deletes
            if self._full:
                self._wake.set()

    def look_for_urgent(self) -> None:
        """Begin portions of new urgent manifests while there is room; begins none after a fault that can pass."""
        urgent = [item for item in self._open if item.urgent]
        if self._stopping or len(urgent) >= self._max_open:
            return
        try:
            pointers = urgent_pointers(self._context.services, {name for item in urgent for name in item.pointers})
            sizes = input_sizes(self._context, list(pointers))
        except (BotoCoreError, ClientError) as error:
            log_passing_fault(self._context, error)
            return
        for portion in cut(sizes, sizes.__getitem__, portion_limit(self._limit)):
            size, keys = size_of(sizes, portion), {name: pointers[name] for name in portion}
            begun = OpenConversion(self._context.clock(), keys, size, urgent=True)
            urgent.append(begun)
            seconds, files = (sum(item.size[part] for item in urgent) for part in (0, 1))
            fits = seconds <= self._limit.core_seconds and files <= self._limit.files
            # Several portions are open, so that a few slow files, which are small, do not keep the others waiting.
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
                # Includes a second pointer to a manifest that is being converted, which would keep an idle run alive.
                other.pointers.setdefault(manifest, []).append(key)
                # Such a pointer does not count: a query that reads only such pointers would be followed without end.
                self._read += other is begun
            self._open.append(begun)
        self._threads.submit(self._convert, begun)
        return begun

    def _convert(self, begun: OpenConversion) -> None:
        # An id begins with the creation time of its manifest.
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
                outcomes = convert_portion(replace(context, pool=POOL), manifests, is_stopping, self._recent)
            else:
                outcomes = convert_manifests(
                    context, manifests, is_stopping=is_stopping, recent=self._recent, on_open=set_open
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
            # There is room for other urgent manifests. Pointers that could not be deleted would only be read again.
            if begun.urgent and deleted:
                self._wake.set()

    def _wait_for(self, begun: OpenConversion) -> None:
        """Return when the micro-batch has ended, or after a while when there is room for another one."""
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
        self._recent = (*self._recent, *converted)[-MAX_RECENT:]
        # Manifests that had ended before do not count: each look finds them if their pointers cannot be deleted.
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
        if not self._working.acquire(timeout=STOP_TIMEOUT_SECONDS if row.stop_requested else 0):
            return False
        try:
            # The look is checked first, because it may begin conversions until it ends.
            if not self._look.done() or self._look.exception() or self._error is not None or self._open:
                return False
            # First record the end, then check the inbox: a function that writes a pointer later sees no heartbeat and
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
    """The pattern for Spark's listing of exactly this job's inbox.

    It is a pattern because Spark treats a folder without objects as missing. It matches the folder, not the objects,
    because Spark would request the status of each matching object in a separate task.
    """
    return f"s3a://{services.resources.control_bucket}/{{{inbox(services.ledger.stream.shard).rstrip('/')}}}/"


def key_of_path(path: str) -> str:
    """The key of a pointer from the path that Spark reports: an inbox is at the top of the bucket."""
    return "/".join(path.split("/")[-2:])


def live_workers(spark: SparkSession) -> int:
    """Number of live workers of the run: the executors, and the driver, which has a worker of its own."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size())
