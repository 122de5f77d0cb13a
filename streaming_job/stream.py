"""The queries over the inbox, one after the other: heartbeat, end between micro-batches, a new checkpoint each time."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lake.counted import format_count
from lake.layout import OTHER_POINTERS, inbox
from streaming_job.inbox import delete_pointers, find_inboxes, has_open_manifests
from streaming_job.meter import StreamMeter
from streaming_job.micro_batch import convert_pointers
from streaming_job.urgent import UrgentInbox
from transform.outcome import ALARM
from transform.preflight import BlockedRunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from transform.context import ConversionContext
    from transform.outcome import ConversionOutcome

MAX_POINTER_AGE = "36500d"
"""A hundred years: Spark must not skip a pointer because it is older than the newest one."""
MAX_POINTERS_PER_TRIGGER = 500
"""Not derived from the maximum size of a manifest: a quiet dataset has many small ones between two triggers, and they
would wait. The input that is converted side by side is limited later, by ``stream.batch_bytes``."""
MAX_POINTERS_PER_CHECKPOINT = 5000
"""Spark's file source remembers every pointer that it has read, in memory and in its log, which each tenth micro-batch
writes anew as a whole: ten full micro-batches do it once. A query that has read as many is followed by a new one."""


class InboxStream:
    """Runs micro-batches until a stop is requested or the stream has been idle outside its window.

    Parameters
    ----------
    wait
        Pauses for a number of seconds, before a manifest that another run holds is tried again.
    """

    def __init__(self, context: ConversionContext, wait: Callable[[float], object] = time.sleep) -> None:
        self._context = context
        self._wait = wait
        self._working = threading.Lock()
        self._ending = False
        self._error: BaseException | None = None
        self._wake = threading.Event()
        """Set: the thread of the run has something to do before the next heartbeat is due."""
        self._read = 0
        """Pointers that the current query has read."""
        self._full = False
        """The current query begins no other micro-batch, and another query follows."""
        self._inboxes: tuple[str, ...] = (inbox(context.services.ledger.stream.shard),)
        """Those that the current query reads; looked for when it begins."""
        self._undeleted: list[str] = []
        self._unchecked = True
        self._last_work = context.clock()
        self._meter = StreamMeter(context, lambda: live_workers(context.spark))
        self._urgent = UrgentInbox(context, wait, self._record_work, lambda: self._inboxes)

    def run(self) -> None:
        """Return when the run should end; raises what a micro-batch raised.

        A query begins with an empty checkpoint on the disk of the driver, and no other query ever reads it: what was
        not converted still has its pointer, which the next query finds, and the ledger knows what was converted.
        """
        try:
            self._inboxes = find_inboxes(self._context.services)
            self._urgent.start()
            while self._run_query():
                self._context.log(f"a new query: the last one has read {format_count(self._read, 'pointer')}")
                self._inboxes = find_inboxes(self._context.services)
        finally:
            self._urgent.stop()
            self._meter.end()

    def _run_query(self) -> bool:
        """Whether another query is to follow."""
        with TemporaryDirectory(prefix="inbox-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
            self._read, self._full = 0, False
            self._wake.clear()
            query = self._start(checkpoint)
            try:
                return self._watch(query)
            finally:
                query.stop()

    def _watch(self, query: StreamingQuery) -> bool:
        while True:
            self._wake.wait(self._context.services.settings.stream.trigger_seconds)
            if self._error is not None:
                raise self._error
            self._record_heartbeat()
            self._meter.count()
            self._urgent.raise_error()
            if self._may_end():
                return False
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
            .load(pattern_of(self._context.services.resources.control_bucket, self._inboxes))
            .select("value", "_metadata.file_path")
        )
        return (
            pointers.writeStream.foreachBatch(self._run_micro_batch)
            .option("checkpointLocation", Path(checkpoint).as_uri())
            .trigger(processingTime=f"{stream.trigger_seconds} seconds")
            .start()
        )

    def _run_micro_batch(self, batch: DataFrame, number: int) -> None:
        with self._working:
            # The query has ended: the next one reads these pointers.
            if self._ending or self._full:
                raise InterruptedError("the query has ended before this micro-batch")
            try:
                rows = batch.collect()
                pointers = [str(row[0]) for row in rows]
                self._context.log(f"micro-batch {number}: {format_count(len(pointers), 'pointer')}")
                row = self._context.services.ledger.stream
                row.begin_micro_batch(self._context.clock())
                self._record_work(convert_pointers(self._context, pointers, self._wait, check_first=self._unchecked))
                self._delete({key_of_path(path) for _, path in rows})
                row.end_micro_batch()
                self._unchecked = self._unchecked and not pointers
            except BlockedRunError as error:
                self._context.log(f"{ALARM} {error}")
                self._end_with(error)
                raise
            except BaseException as error:
                self._end_with(error)
                raise
            self._read += len(pointers)
            # As long as pointers cannot be deleted, another query would only read them again.
            self._full = self._read >= MAX_POINTERS_PER_CHECKPOINT and not self._undeleted
            if self._full:
                self._wake.set()

    def _end_with(self, error: BaseException) -> None:
        self._error = error
        self._wake.set()

    def _delete(self, keys: set[str]) -> None:
        """Delete the pointers of a micro-batch, and those that were left before."""
        self._undeleted = delete_pointers(self._context, sorted(keys.union(self._undeleted)))

    def _record_work(self, outcomes: list[ConversionOutcome]) -> None:
        self._meter.add(outcomes)
        self._last_work = self._context.clock()

    def _record_heartbeat(self) -> None:
        self._context.services.ledger.stream.record_heartbeat(self._context.run, self._context.clock())

    def _may_end(self) -> bool:
        """Whether to end now; after True no micro-batch begins."""
        row = self._context.services.ledger.stream.get()
        now = self._context.clock()
        in_window = row.window_until is not None and datetime.fromisoformat(row.window_until) > now
        idle = now - self._last_work >= timedelta(minutes=self._context.services.settings.stream.idle_minutes)
        if not row.stop_requested and (in_window or not idle):
            return False
        if not self._working.acquire(blocking=False):
            return False
        try:
            if not self._urgent.close():
                if not row.stop_requested:
                    self._urgent.reopen()
                return False
            # First record the end, then look: a function that puts a pointer after the look sees no heartbeat and
            # starts another run.
            self._context.services.ledger.stream.end()
            if not row.stop_requested and has_open_manifests(self._context.services, self._inboxes):
                self._last_work = now
                self._record_heartbeat()
                self._urgent.reopen()
                return False
            self._ending = True
        finally:
            self._working.release()
        self._context.log("stopped as requested" if row.stop_requested else "ended: idle outside the stream window")
        return True


def pattern_of(bucket: str, inboxes: Iterable[str]) -> str:
    """What Spark is to list: exactly these inboxes.

    A pattern, because for Spark a folder without objects does not exist. It names the folders and not their objects: of
    each object that matches a pattern, Spark would ask for its status in a task of its own.
    """
    return f"s3a://{bucket}/{{{','.join(prefix.rstrip('/') for prefix in inboxes)}}}/"


def key_of_path(path: str) -> str:
    """The key of a pointer, from the path by which Spark has read it: an inbox is at the top of the bucket."""
    return "/".join(path.split("/")[-2:])


def live_workers(spark: SparkSession) -> int:
    """Workers of the run that are alive: the executors, and the driver, which has a worker of its own."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size())
