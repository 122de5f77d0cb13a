"""The long-lived query over the inbox: heartbeat, graceful end between micro-batches, broken checkpoints."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lake.layout import CHECKPOINT, INBOX
from streaming_job.inbox import set_checkpoint_aside, unfinished
from streaming_job.micro_batch import convert_pointers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from transform.context import ConversionContext

NEVER_TOO_OLD = "36500d"
POINTERS_PER_TRIGGER = 100
"""A quiet dataset's manifests are far below their limit, and many come between two triggers: a number that follows
from the limit would leave them waiting. The bytes of one Spark job are bounded behind it."""


class InboxStream:
    """Runs micro-batches until it is told to stop or has been idle outside of the stream window."""

    def __init__(self, context: ConversionContext, wait: Callable[[float], object] = time.sleep) -> None:
        self._context = context
        self._wait = wait
        self._working = threading.Lock()
        self._ending = False
        self._error: BaseException | None = None
        self._batches = 0
        self._last_work = context.clock()

    def run(self) -> None:
        """Returns when the run should end; raises what a micro-batch raised.

        A checkpoint that Spark cannot read is set aside once, and a new one begun.
        """
        try:
            self._run_query()
        except PySparkException as error:
            if self._error is not None:
                raise self._error from error
            if self._batches:
                raise
            context = self._context
            control = context.services.resources.control_bucket
            aside = set_checkpoint_aside(context.services.s3, control, context.clock())
            context.log(f"ALARM the checkpoint could not be read and was moved to s3://{control}/{aside}: {error}")
            self._run_query()

    def _run_query(self) -> None:
        query = self._start()
        try:
            seconds = self._context.services.settings.stream.trigger_seconds
            while not query.awaitTermination(seconds):
                self._record_heartbeat()
                if self._may_end():
                    return
        finally:
            query.stop()

    def _start(self) -> StreamingQuery:
        spark, stream = self._context.spark, self._context.services.settings.stream
        control = f"s3a://{self._context.services.resources.control_bucket}/"
        # A pointer that was deleted after it was listed is skipped: the ledger decides, the inbox is a hint.
        spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        pointers = (
            spark.readStream.format("text")
            .schema("value string")
            .option("maxFilesPerTrigger", POINTERS_PER_TRIGGER)
            .option("maxFileAge", NEVER_TOO_OLD)
            .option("cleanSource", "delete")
            # A pattern, because a folder without objects would not exist for Spark.
            .load(f"{control}{INBOX}*.json")
        )
        return (
            pointers.writeStream.foreachBatch(self._convert)
            .option("checkpointLocation", control + CHECKPOINT)
            .trigger(processingTime=f"{stream.trigger_seconds} seconds")
            .start()
        )

    def _convert(self, batch: DataFrame, number: int) -> None:
        with self._working:
            # The run is over: this micro-batch is the next run's first.
            if self._ending:
                raise InterruptedError("the run ends before this micro-batch")
            self._batches += 1
            try:
                pointers = [str(row[0]) for row in batch.collect()]
                self._context.log(f"micro-batch {number}: {len(pointers)} pointers")
                convert_pointers(self._context, pointers, self._wait)
            except BaseException as error:
                self._error = error
                raise
            self._last_work = self._context.clock()

    def _record_heartbeat(self) -> None:
        self._context.services.ledger.stream.record_heartbeat(self._context.run, self._context.clock())

    def _may_end(self) -> bool:
        """Whether to end now; once it says so no micro-batch begins any more."""
        row = self._context.services.ledger.stream.get()
        now = self._context.clock()
        in_window = row.window_until is not None and datetime.fromisoformat(row.window_until) > now
        idle = now - self._last_work >= timedelta(minutes=self._context.services.settings.stream.idle_minutes)
        if not row.stop_requested and (in_window or not idle):
            return False
        if not self._working.acquire(blocking=False):
            return False
        try:
            # First say that this run ends, then look: who puts a pointer after the look sees no heartbeat and starts
            # another run.
            self._context.services.ledger.stream.end()
            if not row.stop_requested and unfinished(self._context.services):
                self._last_work = now
                self._record_heartbeat()
                return False
            self._ending = True
        finally:
            self._working.release()
        self._context.log("stopped as requested" if row.stop_requested else "idle outside of the stream window: ended")
        return True
