"""What one core does with one task: read its splits, write and upload its objects, count everything."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zipimport import zipimporter

from ndjson_arrow import Reader

from lake.errors import AuditError
from lake.layout import lake_key, quarantine_key
from transform.clients import s3_client
from transform.columns import new_columns
from transform.format_detection import BYTE_ORDER_MARK, recognise
from transform.parquet_writer import ParquetFiles
from transform.quarantine_writer import QuarantineFiles, line_record, remainder_records
from transform.read_ahead import ReadAhead
from transform.source import Source, UnreadableFileError
from transform.task_model import NUMBERS_PER_TASK, FileFailure, SplitResult, TaskResult
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from ndjson_arrow import Batch, Reject, SplitCounts
    from typing_extensions import Buffer

    from lake.commit import PendingObject
    from lake.manifest import ObjectVersion
    from transform.task_model import Split, Task

PIECE_BYTES = 512 << 10
"""What the reader is fed at once: it copies what it is fed, and small copies stay in the processor's cache."""
BATCH_BYTES = 8 << 20
"""Columns are encoded and compressed when they hold so much: a row group is in memory compressed, but for this."""


def run_partition(tasks: Iterable[Task]) -> Iterator[TaskResult]:
    """The function Spark calls; a partition holds one task."""
    source = Source()
    s3 = s3_client()
    for task in tasks:
        with Uploads(s3) as uploads, tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
            yield run_task(task, source, uploads, Path(folder))
    forget_zip_importers()


def forget_zip_importers() -> None:
    """Saves the worker's next task about 0.07 s.

    Before every task Spark has Python invalidate its import caches, and each importer of a zip on the path (Spark's own
    are two of 1,500 files) then reads the zip's directory anew. Made again at the next import, it finds it in memory.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]


def run_task(task: Task, source: Source, uploads: Uploads, folder: Path) -> TaskResult:
    """Convert all splits; with a failed file in them, only look for further ones.

    Raises
    ------
    TransientError
        Reading or uploading did not work now; nothing of the attempt is left behind.
    AuditError
        The written files do not hold the rows that were read.
    """
    started = time.monotonic()
    work = TaskRun(task, uploads, folder)
    with ReadAhead(source, task.splits) as ahead:
        for index, split in enumerate(task.splits):
            work.convert(index, split, ahead)
    work.finish()
    if work.failures:
        uploads.abort()
    return TaskResult(
        task.manifest,
        task.number,
        tuple(future.result() for future in work.objects) if not work.failures else (),
        tuple(future.result() for future in work.quarantine) if not work.failures else (),
        tuple(work.results),
        tuple(new_columns(work.columns, task.known_columns)),
        tuple(FileFailure(file, reason) for file, reason in work.failures.items()),
        round((time.monotonic() - started) * 1000),
    )


@dataclass(frozen=True, slots=True)
class ObjectNumbers:
    """Final keys of a task's objects, in order."""

    task: Task

    def number(self, count: int) -> int:
        if count >= NUMBERS_PER_TASK:
            raise AuditError(f"one task of {self.task.manifest} wrote {count} objects: raise convert.target_file_bytes")
        return self.task.number * NUMBERS_PER_TASK + count


class TaskRun:
    """The state of one task while it runs."""

    def __init__(self, task: Task, uploads: Uploads, folder: Path) -> None:
        settings = task.settings
        self._task = task
        self._uploads = uploads
        self._names = ObjectNumbers(task)
        self._reader = Reader(
            known_columns=task.known_columns,
            column_limit=max(settings.column_limit, len(task.known_columns)),
            max_line_bytes=settings.max_line_bytes,
            flush_bytes=min(BATCH_BYTES, settings.row_group_bytes),
            provenance=settings.provenance,
        )
        self._parquet = ParquetFiles(folder, settings, self._parquet_file)
        self._rejects = QuarantineFiles(folder, settings.target_file_bytes, self._quarantine_file)
        self._input_bytes = max(1, sum(split.size for split in task.splits))
        self._read_bytes = 0
        self.columns: list[str] = []
        self.objects: list[Future[PendingObject]] = []
        self.quarantine: list[Future[PendingObject]] = []
        self.results: list[SplitResult] = []
        self.failures: dict[ObjectVersion, str] = {}

    def convert(self, index: int, split: Split, ahead: ReadAhead) -> None:
        """Read one split; a file that cannot be read goes to ``failures``."""
        reader = self._reader
        reader.open(
            source_text(split.file),
            start=split.start,
            end=None if split.whole else split.end,
            arrived_at=split.file.arrived_at,
        )
        unreadable: str | None = None
        try:
            for chunk in ahead.chunks(index):
                self._read(chunk)
                # Not kept while the next one is waited for.
                del chunk
                if reader.done:
                    break
            else:
                reader.end_of_input()
                self._drain()
        except UnreadableFileError as error:
            unreadable = str(error)
        counts = reader.close()
        rejects = reader.take_rejects()
        # A reader that was stopped by an unreadable source says so as well, but not why.
        unreadable = unreadable or counts.error
        if unreadable is None and split.start == 0 and rejects:
            opens_file = rejects[0].offset <= len(BYTE_ORDER_MARK)
            unreadable = recognise([reject.line for reject in rejects], counts.rows, opens_file=opens_file)
        if unreadable is not None:
            self.failures.setdefault(split.file, unreadable)
            return
        self._quarantine(split, counts, rejects)
        self.results.append(_result(split, counts))

    def finish(self) -> None:
        """Write out what is left and wait for the uploads."""
        batch = self._reader.flush()
        if batch is not None:
            self._write(batch)
        if not self.failures:
            self._parquet.close()
            self._rejects.close()
            read = sum(result.rows for result in self.results)
            if self._parquet.rows != read:
                raise AuditError(
                    f"task {self._task.number} of {self._task.manifest} read {read} rows and wrote "
                    f"{self._parquet.rows}: the attempt is repeated"
                )
        self._uploads.finish()

    def _read(self, chunk: Buffer) -> None:
        """Parse the chunk piece by piece, writing batches as they become full."""
        with memoryview(chunk) as view:
            self._read_bytes += len(view)
            for start in range(0, len(view), PIECE_BYTES):
                self._reader.feed(view[start : start + PIECE_BYTES])
                self._drain()
                if self._reader.done:
                    break

    def _drain(self) -> None:
        while (batch := self._reader.read()) is not None:
            self._write(batch)

    def _write(self, batch: Batch) -> None:
        if self.failures:
            return
        self.columns = batch.names
        self._parquet.write(batch, min(1.0, self._read_bytes / self._input_bytes))

    def _quarantine(self, split: Split, counts: SplitCounts, rejects: list[Reject]) -> None:
        if not counts.rejects or self.failures:
            return
        kept = Counter(reject.reason for reject in rejects)
        self._rejects.write(line_record(split.file, reject) for reject in rejects)
        self._rejects.write(remainder_records(split.file, split.start, split.end, counts.rejects, kept))

    def _parquet_file(self, path: Path, rows: int) -> None:
        task = self._task
        number = self._names.number(len(self.objects))
        key = lake_key(task.partition, task.manifest, task.generation, number)
        self.objects.append(self._uploads.add(path, task.lake_bucket, key, rows))

    def _quarantine_file(self, path: Path, records: int) -> None:
        task = self._task
        number = self._names.number(len(self.quarantine))
        key = quarantine_key(task.partition, task.manifest, task.generation, number)
        self.quarantine.append(self._uploads.add(path, task.quarantine_bucket, key, records))


def source_text(file: ObjectVersion) -> str:
    """What ``_source`` holds: the file, and its version where the bucket has versions."""
    return file.uri if file.version_id is None else f"{file.uri}?versionId={file.version_id}"


def _result(split: Split, counts: SplitCounts) -> SplitResult:
    first = counts.first_reject
    return SplitResult(
        split,
        counts.lines,
        counts.rows,
        counts.blank_lines,
        dict(counts.rejects),
        counts.bytes,
        counts.codec is not None,
        None if first is None else f"{first.reason} at byte {first.offset}",
    )
