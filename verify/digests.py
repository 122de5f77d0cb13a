"""Both sides of a comparison as multisets of row digests, in tasks that any process can run: results only add up."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake.commit import PendingObject, SourceCount
from lake.manifest import ObjectVersion
from lake.settings import ConvertSettings
from verify.elements import Line
from verify.input_rows import InputCount, InputReader
from verify.lake_rows import has_provenance, read_pairs
from verify.objects import GoneError, download
from verify.quarantine_records import QuarantinedFile
from verify.report import Difference, ManifestReport
from verify.rows import RowMultiset, row_digest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_TASKS = 64
"""Maximum number of tasks of each side of a manifest; a multiset is 4,096 numbers."""

RunTasks = Callable[[Callable[["S3Client", Any], "SideDigest"], Sequence[Any]], Iterable["SideDigest"]]
"""Calls a function with an S3 client and each of the tasks, in any order, anywhere."""


@dataclass(slots=True)
class SideDigest:
    """The rows of one side, or of a part of it."""

    rows: RowMultiset = field(default_factory=RowMultiset)
    report: ManifestReport = field(default_factory=ManifestReport)
    complete: bool = True
    """Nothing was left out: if something was, the sides cannot be compared."""
    provenance: bool = False
    """The rows have the columns that say which line they come from."""

    def add(self, other: SideDigest) -> None:
        """Add another part of the same side."""
        self.rows.merge(other.rows)
        self.report.merge(other.report)
        self.complete = self.complete and other.complete
        self.provenance = self.provenance or other.provenance


@dataclass(frozen=True, slots=True)
class LakeTask:
    """Published Parquet files."""

    objects: tuple[PendingObject, ...]


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """An input file, and what has been said of it."""

    file: ObjectVersion
    record: QuarantinedFile
    """What the quarantine has of it."""
    source: SourceCount | None
    """Its counts in the commit document."""


@dataclass(frozen=True, slots=True)
class InputTask:
    """Input files of one manifest."""

    files: tuple[ExpectedFile, ...]
    convert: ConvertSettings
    provenance: bool
    """Whether the rows of the lake have provenance."""


def group_by_size(sizes: Sequence[int]) -> Iterator[slice]:
    """At most ``MAX_TASKS`` ranges of consecutive items, each of about the same size."""
    share = sum(sizes) / MAX_TASKS
    first = size = 0
    for number, item in enumerate(sizes):
        size += item
        if size > share:
            yield slice(first, number + 1)
            first, size = number + 1, 0
    if first < len(sizes):
        yield slice(first, len(sizes))


def digest_lake(s3: S3Client, task: LakeTask) -> SideDigest:
    """The rows of published files; the disk holds one of them at a time. Raises botocore's errors."""
    digest = SideDigest()
    with tempfile.TemporaryDirectory(prefix="hybrid-router-verify-") as folder:
        path = Path(folder) / "object.parquet"
        for item in task.objects:
            uri = f"s3://{item.bucket}/{item.key}"
            try:
                download(s3, item.bucket, item.key, path)
                digest.provenance = digest.provenance or has_provenance(path)
                for pairs in read_pairs(path):
                    digest.rows.add(row_digest(pairs))
            except GoneError as error:
                digest.report.differs(Difference(uri, f"is missing: {error}"))
                digest.complete = False
            except (OSError, ValueError) as error:
                digest.report.differs(Difference(uri, f"cannot be read by pyarrow: {error}"))
                digest.complete = False
    return digest


def digest_input(s3: S3Client, task: InputTask) -> SideDigest:
    """The rows of input files; rejected lines are compared with the quarantine, counts with the commit document.

    Raises botocore's errors.
    """
    digest = SideDigest()
    reader = InputReader(s3, task.convert)
    for expected in task.files:
        _read_file(reader, expected, digest, provenance=task.provenance)
    return digest


def _read_file(reader: InputReader, expected: ExpectedFile, digest: SideDigest, *, provenance: bool) -> None:
    file, report, count = expected.file, digest.report, InputCount()

    def compare(line: Line, reason: str) -> None:
        problem = expected.record.take(line, reason)
        if problem is not None:
            report.differs(Difference(file.uri, problem, file.version, line.number, line.offset))

    try:
        for _, pairs in reader.read(file, provenance=provenance, count=count, on_reject=compare):
            digest.rows.add(row_digest(pairs))
    except GoneError as error:
        report.cannot_be_proven(f"{file.uri} (version {file.version}) is gone: {error}")
        digest.complete = False
        return
    except (OSError, EOFError, ValueError) as error:
        problem = f"cannot be decompressed to its end ({error}), and is not in the quarantine as a whole"
        report.differs(Difference(file.uri, problem, file.version))
        digest.complete = False
        return
    report.rows += count.rows
    report.rejects += count.rejects.total()
    for problem in expected.record.remaining():
        report.differs(Difference(file.uri, problem, file.version))
    counted = (count.lines, count.rows, count.blank_lines, dict(count.rejects))
    source = expected.source
    claimed = None if source is None else (source.lines, source.rows, source.blank_lines, source.rejects)
    if counted != claimed:
        # The commit document's counts are what `explain` shows.
        problem = f"has (lines, rows, blank lines, rejects) = {counted}, and the commit document says {claimed}"
        report.differs(Difference(file.uri, problem, file.version))
