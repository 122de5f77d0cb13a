"""Runs one task on one core: reads its splits, writes and uploads its objects, and counts everything.

It limits processor time, so that a file that is slow to read does not hold a core for hours.
"""

import ctypes
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from time import thread_time

import pyarrow as pa
from ndjson_arrow import Batch, Reader, detect_codec, find_other_format

from lake.aws_types import Buffer
from lake.commit import PendingObject
from lake.layout import lake_key, quarantine_key
from lake.ledger.datasets import ADDED_COLUMNS
from lake.manifest import ObjectVersion
from lake.settings import ConvertSettings
from lake.texts import format_count
from transform.chunk_sample import Sampling
from transform.clients import AddFile, Fetch, s3_client
from transform.give_up import fault_of
from transform.parquet_writer import ParquetFiles
from transform.quarantine_writer import QuarantineContent, QuarantineFiles, file_record
from transform.source import (
    S3_REQUESTS,
    DeniedFileError,
    ReadAhead,
    Requests,
    Source,
    UnreadableFileError,
    UnreadableNowError,
)
from transform.task_model import GRACE_SECONDS, FileFailure, Split, SplitResult, Task, TaskResult
from transform.upload import uploading

PIECE_BYTES = 512 << 10
"""Bytes that the reader is fed at once: it copies them, and small copies stay in the processor's cache."""
BATCH_BYTES = 8 << 20
"""Columns of this size are encoded and compressed: memory holds only this much of a row group uncompressed."""
COMPRESSED_SHARE = 0.1
"""Share of the slowest speed that a compressed file must reach, because its bytes are the stored ones. Measured: logs
that bzip2 compresses to a 36th are read at 0.3 MB/s, random rows at 1.6 MB/s, gzip never below that; a row of 1,000
keys before empty objects at 0.02 to 0.05 MB/s."""
MAGIC_BYTES = 4
MIN_STREAM_SECONDS = 1.0
"""A task of the stream lane with less time left reads no further file."""


class SlowFileError(Exception):
    """The file takes longer than the stream lane allows; the message is the reason."""


class SplitDeadline:
    """Judges how fast one split is read, from its creation on.

    It counts only processor time of this thread, not the time that S3, the network, the disk or other tasks made it
    wait, so that a fault of the environment is not mistaken for a fault of the file. A large gzip file is inflated by
    another thread, whose time is not counted: its limits are in bytes (`native/src/inflate.rs`). ``processor_time``
    returns the seconds of processor time of the thread that reads the split. ``stream_seconds`` is the processor time
    that the split may take in the stream lane; None in the batch lane.
    """

    def __init__(
        self,
        split: Split,
        settings: ConvertSettings,
        processor_time: Callable[[], float],
        stream_seconds: float | None = None,
    ) -> None:
        self._split = split
        self._settings = settings
        self._processor_time = processor_time
        self._stream_seconds = stream_seconds
        self._begun = processor_time()
        self._read_bytes = 0
        self._slowest = float(settings.min_bytes_per_second)

    def add(self, piece: memoryview) -> None:
        if not self._read_bytes and self._split.whole and detect_codec(bytes(piece[:MAGIC_BYTES])) is not None:
            self._slowest *= COMPRESSED_SHARE
        self._read_bytes += len(piece)

    def check(self) -> None:
        """Raise an error if the split takes too long.

        Raises ``SlowFileError`` in a task of the stream lane, because the batch lane decides whether the file is
        readable; ``UnreadableNowError`` in a task of the batch lane.
        """
        limits, seconds = self._settings, self._processor_time() - self._begun
        if self._stream_seconds is not None and seconds > self._stream_seconds:
            limit = "more than the stream lane has for it (stream.latency_goal_seconds)"
        elif seconds > limits.max_core_minutes * 60:
            limit = f"more than convert.max_core_minutes ({limits.max_core_minutes:g})"
        elif seconds > GRACE_SECONDS and self._read_bytes < self._slowest * seconds:
            limit = f"slower than convert.min_bytes_per_second ({limits.min_bytes_per_second:,})"
            if self._slowest != limits.min_bytes_per_second:
                limit += " allows a compressed file"
        else:
            return
        took = f"{format_count(self._read_bytes, 'byte')} took {round(seconds / 60, 1):g} minutes of processor time"
        if self._stream_seconds is not None:
            raise SlowFileError(f"{took}, {limit}")
        advice = f"{took}, {limit}: if the file is valid, change the setting and, for a stage, deploy it"
        raise UnreadableNowError(advice, self._split.file)


def run_task(task: Task, fetch: Fetch, add_file: AddFile, folder: Path, requests: Requests = S3_REQUESTS) -> TaskResult:
    """Convert all splits. After an unreadable file, the others are only read, to find all unreadable files at once.

    ``folder`` is empty and on a local disk, for files that are not uploaded yet. Raises ``TransientError``,
    ``BotoCoreError`` or ``ClientError`` if reading or uploading did not work now; the caller aborts the uploads;
    ``AuditError`` if a file does not hold what was written to it.
    """
    started = time.monotonic()
    task_run = TaskRun(task, add_file, folder)
    with ReadAhead(fetch, task.splits, requests=requests) as ahead:
        for index, split in enumerate(task.splits):
            task_run.read_split(index, split, ahead)
    task_run.finish()
    known = {*task.known_columns, *ADDED_COLUMNS}
    return TaskResult(
        task.manifest,
        task.number,
        tuple(future.result() for future in task_run.objects),
        tuple(future.result() for future in task_run.quarantine),
        tuple(task_run.results),
        tuple(name for name in task_run.columns if name not in known),
        tuple(task_run.failures.values()),
        round((time.monotonic() - started) * 1000),
        tuple(task_run.quarantine_contents),
    )


class TaskRun:
    def __init__(self, task: Task, add_file: AddFile, folder: Path) -> None:
        settings = task.settings
        self._task = task
        self._add_file = add_file
        self._reader = Reader(
            known_columns=task.known_columns,
            column_limit=max(settings.column_limit, len(task.known_columns)),
            max_line_bytes=settings.max_line_bytes,
            concatenated=settings.concatenated,
            flush_bytes=min(BATCH_BYTES, settings.row_group_bytes),
            provenance=settings.provenance,
        )
        self._parquet = ParquetFiles(folder, settings, self._upload_parquet, Sampling.of(task), task.unnumbered)
        self._rejects = QuarantineFiles(folder, settings.target_file_bytes, self._upload_quarantine)
        self._input_bytes = max(1, sum(split.size for split in task.splits))
        self._read_bytes = 0
        self._begun = thread_time() if task.stream_seconds is not None else 0.0
        self.columns: list[str] = []
        self.objects: list[Future[PendingObject]] = []
        self.quarantine: list[Future[PendingObject]] = []
        self.quarantine_contents: list[QuarantineContent] = []
        self.results: list[SplitResult] = []
        self.failures: dict[ObjectVersion, FileFailure] = {}
        self._rejects.write([file_record(file, reason) for file, reason in task.excluded])

    def read_split(self, index: int, split: Split, ahead: ReadAhead) -> None:
        """Read one split. A file that cannot be read to its end is added to ``failures``, and reading it ends."""
        if split.file in self.failures:
            return
        seconds = self._task.stream_seconds
        if seconds is not None:
            # Half of the rest of twice a file's time, so that any number of slow files takes no longer than that.
            seconds -= (thread_time() - self._begun) / 2
            if seconds < MIN_STREAM_SECONDS:
                self.failures[split.file] = FileFailure(split.file, "its task has no time left", slow=True)
                return
        reader, file = self._reader, split.file
        source = file.uri if file.version_id is None else f"{file.uri}?versionId={file.version_id}"
        reader.open(source, start=split.start, end=None if split.whole else split.end, arrived_at=file.arrived_at)
        failure: FileFailure | None = None
        deadline = SplitDeadline(split, self._task.settings, thread_time, seconds)
        try:
            for chunk in ahead.chunks(index):
                self._read(chunk, deadline)
                # Frees the memory of this chunk while the next one is awaited.
                del chunk
                if reader.done:
                    break
            else:
                reader.end_of_input()
                self._drain(deadline)
        except UnreadableFileError as error:
            advice = error.advice if isinstance(error, UnreadableNowError) else None
            failure = FileFailure(split.file, str(error), advice=advice)
        except DeniedFileError as error:
            failure = FileFailure(split.file, str(error), denied=fault_of(error))
        except SlowFileError as error:
            failure = FileFailure(split.file, str(error), slow=True)
        counts = reader.close()
        rejects = reader.take_rejects()
        reason = counts.error
        if reason is None and split.start == 0:
            reason = find_other_format(counts, rejects, concatenated=self._task.settings.concatenated)
        # If the input ended early, the reader has an error as well, but not the cause.
        if failure is not None or reason is not None:
            self.failures.setdefault(split.file, failure or FileFailure(split.file, str(reason)))
            return
        if counts.rejects and not self.failures:
            self._rejects.write_rejects(split, counts.rejects, rejects)
        first = counts.first_reject
        self.results.append(
            SplitResult(
                split,
                counts.lines,
                counts.rows,
                counts.blank_lines,
                dict(counts.rejects),
                counts.bytes,
                counts.codec is not None,
                None if first is None else f"{first.reason} at byte {first.offset}",
            )
        )

    def finish(self) -> None:
        batch = self._reader.flush()
        if batch is not None:
            self._write(batch)
        if not self.failures:
            self._parquet.close()
            self._rejects.close()

    def _read(self, chunk: Buffer, deadline: SplitDeadline) -> None:
        with memoryview(chunk) as view:
            self._read_bytes += len(view)
            for start in range(0, len(view), PIECE_BYTES):
                piece = view[start : start + PIECE_BYTES]
                self._reader.feed(piece)
                deadline.add(piece)
                self._drain(deadline)
                if self._reader.done:
                    break
                deadline.check()

    def _drain(self, deadline: SplitDeadline) -> None:
        while (batch := self._reader.read()) is not None:
            self._write(batch)
            # One piece can inflate to minutes of work.
            deadline.check()

    def _write(self, batch: Batch) -> None:
        if self.failures:
            return
        self.columns = batch.names
        self._parquet.write(batch, min(1.0, self._read_bytes / self._input_bytes))

    def _upload_parquet(self, path: Path, rows: int) -> None:
        task = self._task
        number = task.object_number(len(self.objects))
        key = lake_key(task.partition, task.manifest, task.generation, number)
        self.objects.append(self._add_file(path, task.lake_bucket, key, rows))

    def _upload_quarantine(self, path: Path, content: QuarantineContent) -> None:
        task = self._task
        number = task.object_number(len(self.quarantine))
        key = quarantine_key(task.partition, task.manifest, task.generation, number)
        self.quarantine.append(self._add_file(path, task.quarantine_bucket, key, content.records))
        self.quarantine_contents.append(content)


def run_partition(tasks: Iterable[Task]) -> Iterator[TaskResult]:
    """The function that Spark calls for each partition, which holds one task.

    A fault of the environment is returned as a result, because Spark would count retries of it against the job. Any
    other error of ``run_task`` is raised.
    """
    for task in tasks:
        try:
            with uploading(s3_client(task.region)) as add_file, task_folder() as folder:
                source = Source(task.region, task.input_keys, task.input_bucket)
                yield run_task(task, source.fetch, add_file, folder)
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            yield TaskResult(task.manifest, task.number, (), (), (), (), (), 0, fault=fault)
    tidy_worker()


TASK_FOLDER = "hybrid-router-task-"
"""Prefix of the name of a task's folder; the id of its process follows."""


@contextmanager
def task_folder() -> Iterator[Path]:
    """An empty folder on the local disk, removed at the end.

    First it removes the folders of killed workers. Spark kills the slower of two copies of a task, and the tasks of a
    cancelled job; in a streaming run, their files would otherwise fill the workers' disks.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{TASK_FOLDER}[0-9]*-*"):
        try:
            os.kill(int(left.name.removeprefix(TASK_FOLDER).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except PermissionError:
            continue  # The process is alive and belongs to another user.
    with tempfile.TemporaryDirectory(prefix=f"{TASK_FOLDER}{os.getpid()}-") as folder:
        yield Path(folder)


def tidy_worker() -> None:
    """Return the memory that a task has freed to the system.

    Holes in the heap do not fit the blocks of a task with another shape: a worker would grow by up to 80 MB with each
    shape. Within a task the heap keeps its memory (``transform.spark_job.WORKER_ENVIRONMENT``).
    """
    pa.default_memory_pool().release_unused()
    # Only glibc has this function.
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
