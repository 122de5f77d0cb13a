"""The long-lived query over the inbox: heartbeat, end between micro-batches, unreadable checkpoints."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lake.layout import CHECKPOINT, OTHER_POINTERS
from streaming_job.inbox import has_open_manifests, set_checkpoint_aside
from streaming_job.meter import StreamMeter
from streaming_job.micro_batch import convert_pointers
from streaming_job.urgent import UrgentInbox
from transform.outcome import ALARM
from transform.preflight import BlockedRunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from transform.context import ConversionContext
    from transform.outcome import ConversionOutcome

MAX_POINTER_AGE = "36500d"
"""A hundred years: Spark must not skip a pointer because it is older than the newest one."""
MAX_POINTERS_PER_TRIGGER = 500
"""Not derived from the maximum size of a manifest: a quiet dataset has many small ones between two triggers, and they
would wait. The input that is converted side by side is limited later, by ``stream.batch_bytes``."""


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
        self._batches = 0
        self._unchecked = True
        self._last_work = context.clock()
        self._meter = StreamMeter(context, lambda: live_workers(context.spark))
        self._urgent = UrgentInbox(context, wait, self._record_work)

    def run(self) -> None:
        """Return when the run should end; raises what a micro-batch raised.

        A checkpoint that Spark cannot read is set aside once, and a new one is begun.
        """
        try:
            self._urgent.start()
            self._run_query()
        except PySparkException as error:
            if self._error is not None:
                raise self._error from error
            if self._batches:
                raise
            context = self._context
            control = context.services.resources.control_bucket
            aside = set_checkpoint_aside(context.services.s3, control, context.clock())
            context.log(f"{ALARM} the checkpoint could not be read and was moved to s3://{control}/{aside}: {error}")
            self._run_query()
        finally:
            self._urgent.stop()
            self._meter.end()

    def _run_query(self) -> None:
        query = self._start()
        try:
            seconds = self._context.services.settings.stream.trigger_seconds
            while not query.awaitTermination(seconds):
                self._record_heartbeat()
                self._meter.count()
                self._urgent.raise_error()
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
            .option("maxFilesPerTrigger", MAX_POINTERS_PER_TRIGGER)
            .option("maxFileAge", MAX_POINTER_AGE)
            .option("cleanSource", "delete")
            # A pattern, because for Spark a folder without objects does not exist.
            .load(f"{control}{OTHER_POINTERS}")
        )
        return (
            pointers.writeStream.foreachBatch(self._run_micro_batch)
            .option("checkpointLocation", control + CHECKPOINT)
            .trigger(processingTime=f"{stream.trigger_seconds} seconds")
            .start()
        )

    def _run_micro_batch(self, batch: DataFrame, number: int) -> None:
        with self._working:
            # The run has ended: this micro-batch is the first one of the next run.
            if self._ending:
                raise InterruptedError("the run has ended before this micro-batch")
            self._batches += 1
            try:
                pointers = [str(row[0]) for row in batch.collect()]
                self._context.log(f"micro-batch {number}: {len(pointers)} pointers")
                row = self._context.services.ledger.stream
                row.begin_micro_batch(self._context.clock())
                self._record_work(convert_pointers(self._context, pointers, self._wait, check_first=self._unchecked))
                row.end_micro_batch()
                self._unchecked = self._unchecked and not pointers
            except BlockedRunError as error:
                self._context.log(f"{ALARM} {error}")
                self._error = error
                raise
            except BaseException as error:
                self._error = error
                raise

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
            if not row.stop_requested and has_open_manifests(self._context.services):
                self._last_work = now
                self._record_heartbeat()
                self._urgent.reopen()
                return False
            self._ending = True
        finally:
            self._working.release()
        self._context.log("stopped as requested" if row.stop_requested else "ended: idle outside the stream window")
        return True


def live_workers(spark: SparkSession) -> int:
    """Workers of the run that are alive: the executors, and the driver, which has a worker of its own."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size())
